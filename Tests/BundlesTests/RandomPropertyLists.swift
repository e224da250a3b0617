// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import PropertyLists
internal import TestSupport

/// Property lists of all shapes, the same in every run.
struct RandomPropertyLists {
  var random: SeededRandom
  /// What only one of the two forms, or only some readers, can hold.
  var hasOddities = true

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  mutating func value(depth: Int = 0) -> PropertyList {
    switch Int.random(in: 0..<(depth > 4 ? 8 : 12), using: &random) {
    case 0: return .boolean(.random(using: &random))
    case 1:
      return .integer(Int64(bitPattern: random.next()) >> Int64(Int.random(in: 0..<64, using: &random)))
    case 2: return .unsigned(.max - random.next() >> 1)
    case 3: return .real(real())
    case 4: return .date(Double(Int.random(in: -63_000_000_000...250_000_000_000, using: &random)))
    case 5:
      let count = Int.random(in: 0..<90, using: &random)
      return .data((0..<count).map { _ in UInt8.random(in: 0...255, using: &random) })
    case 6, 7: return .string(text())
    case 8, 9:
      return .array((0..<Int.random(in: 0..<6, using: &random)).map { _ in value(depth: depth + 1) })
    default:
      var dictionary = PropertyList.Dictionary()
      for _ in 0..<Int.random(in: 0..<20, using: &random) { dictionary[text()] = value(depth: depth + 1) }
      return .dictionary(dictionary)
    }
  }

  private mutating func real() -> Double {
    let number = Double(bitPattern: random.next())
    return number.isFinite
      ? number : [0, -0.5, 1e300, .infinity, -.infinity].randomElement(using: &random) ?? 0
  }

  mutating func text() -> String {
    let characters =
      Array("abcXYZ 019<>&\"'\n\t]]>äé日本𝄞\u{301}\u{e000}.-_/") + (hasOddities ? ["\r", "\u{7f}"] : [])
    let count = Int.random(in: 0..<(random.next() % 8 == 0 ? 300 : 12), using: &random)
    return String((0..<count).map { _ in characters.randomElement(using: &random) ?? "a" })
  }
}
