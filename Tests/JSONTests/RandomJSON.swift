// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import JSON
internal import TestSupport

/// JSON of all shapes, the same in every run.
struct RandomJSON {
  var random: SeededRandom

  init(seed: UInt64) { random = SeededRandom(seed: seed) }

  mutating func value(depth: Int = 0) -> JSONValue {
    switch Int.random(in: 0..<(depth > 4 ? 8 : 12), using: &random) {
    case 0: return .null
    case 1: return .bool(.random(using: &random))
    case 2, 3:
      return .integer(Int64(bitPattern: random.next()) >> Int64(Int.random(in: 0..<64, using: &random)))
    case 4: return .unsigned(.max - random.next() >> 1)
    case 5: return number()
    case 6, 7: return .string(text())
    case 8, 9:
      return .array((0..<Int.random(in: 0..<6, using: &random)).map { _ in value(depth: depth + 1) })
    default:
      var fields: [String: JSONValue] = [:]
      for _ in 0..<Int.random(in: 0..<12, using: &random) { fields[text()] = value(depth: depth + 1) }
      return .object(fields)
    }
  }

  private mutating func number() -> JSONValue {
    let bits = random.next()
    let number =
      bits % 2 == 0
      ? Double(bitPattern: bits) : Double(Int64(bitPattern: bits) >> 20) / [2, 10, 1000][Int(bits / 2 % 3)]
    return JSONValue(number) ?? .number(0.5)
  }

  mutating func text() -> String {
    let characters = Array(
      "abcXYZ 019<>&\"'\\/\n\t\r\u{0}\u{8}\u{c}\u{1f}\u{7f}äé日本𝄞\u{301}\u{e000}\u{ffff}.-_{}[],:")
    let count = Int.random(in: 0..<(random.next() % 8 == 0 ? 300 : 12), using: &random)
    return String((0..<count).map { _ in characters.randomElement(using: &random) ?? "a" })
  }

  /// A text that means the same, with other space and other escapes.
  mutating func text(of value: JSONValue) -> [UInt8] {
    let space = (0..<Int.random(in: 0..<3, using: &random)).map { _ in
      ([0x20, 0x0a, 0x0d, 0x09] as [UInt8]).randomElement(using: &random) ?? 0x20
    }
    return space + written(value) + space
  }

  private mutating func written(_ value: JSONValue) -> [UInt8] {
    switch value {
    case .string(let value): return written(value)
    case .array(let values):
      var list: [[UInt8]] = []
      for value in values { list.append(text(of: value)) }
      return Array("[".utf8) + Array(list.joined(separator: ",".utf8)) + Array("]".utf8)
    case .object(let fields):
      var list: [[UInt8]] = []
      for (key, value) in fields.sorted(by: { $0.key < $1.key }) {
        list.append(written(key) + Array(":".utf8) + text(of: value))
      }
      return Array("{".utf8) + Array(list.joined(separator: ",".utf8)) + Array("}".utf8)
    default: return (try? JSONText.encode(value)) ?? []
    }
  }

  private mutating func written(_ text: String) -> [UInt8] {
    var bytes = Array("\"".utf8)
    for character in text {
      if character != "/", !"\"\\".contains(character), random.next() % 4 != 0,
        character.unicodeScalars.allSatisfy({ $0.value >= 0x20 })
      {
        bytes += String(character).utf8
      } else {
        for unit in character.utf16 {
          let digits = String(unit, radix: 16, uppercase: random.next() % 2 == 0)
          bytes += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8
        }
      }
    }
    return bytes + Array("\"".utf8)
  }
}

/// What random accidents do to a text, some of them with a sense for what it means.
enum JSONDamage {
  private static let words: [[UInt8]] =
    [
      "[", "]", "{", "}", ",", ":", "\"", "\\", "\\u", "\\ud800", "\\udc00", "\\u0000", "null", "true",
      "false",
      "-", "+", ".", "e", "E5", "e-400", "e400", "0", "00", "18446744073709551616", "-9223372036854775809",
      "1.0",
      "0.1", " ", "\n", "\u{feff}", "/*", "//", "NaN", "\"a\":1,", "\"\":", "é", "\u{301}",
    ].map { Array($0.utf8) } + [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0x00], [0x1f]]

  static func act(_ bytes: inout [UInt8], _ samples: [[UInt8]], _ random: inout SeededRandom) {
    guard !bytes.isEmpty else { return }
    let at = Int.random(in: 0..<bytes.count, using: &random)
    switch Int.random(in: 0..<8, using: &random) {
    case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 1: bytes.removeSubrange(at..<min(bytes.count, at + 1))
    case 2: bytes.removeSubrange(at..<min(bytes.count, at + 8))
    case 3, 4: bytes.insert(contentsOf: words.randomElement(using: &random) ?? [], at: at)
    case 5: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 40)], at: at)
    case 6:
      guard let other = samples.randomElement(using: &random), other.count > at else { return }
      bytes.replaceSubrange(at..., with: other[at...])
    default: bytes[at] = UInt8.random(in: 0...255, using: &random)
    }
  }
}
