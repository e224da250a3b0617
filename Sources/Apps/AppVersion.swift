// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A version as Apple's tools compare it: by its numbers, part by part.
///
/// `1.10` is later than `1.9`, and `1.0` is `1`. What is before a release comes before it: `2.0d3`, `2.0a1`,
/// `2.0b7`, `2.0fc1`, `2.0`.
package struct AppVersion: Comparable, Sendable {
  private var parts: [Part] = []

  /// Numbers are kept as digits, so none is too large.
  private struct Part: Comparable {
    var number: [UInt8] = []
    /// 0 to 3 before a release, 4 for one, or for words that say nothing.
    var stage = 4
    var stageNumber: [UInt8] = []

    static func < (one: Part, other: Part) -> Bool {
      if one.number != other.number { return isLess(one.number, other.number) }
      if one.stage != other.stage { return one.stage < other.stage }
      return isLess(one.stageNumber, other.stageNumber)
    }

    private static func isLess(_ one: [UInt8], _ other: [UInt8]) -> Bool {
      one.count == other.count ? one.lexicographicallyPrecedes(other) : one.count < other.count
    }
  }

  package init(_ text: String) {
    for word in text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
      var rest = word[...]
      var part = Part()
      part.number = Self.number(&rest)
      let letters = rest.prefix { !Self.isDigit($0) }
      rest = rest.dropFirst(letters.count)
      let stages = [["d", "dev"], ["a", "alpha"], ["b", "beta"], ["f", "fc", "rc"]]
      let name = String(decoding: letters, as: UTF8.self).lowercased()
      if let stage = stages.firstIndex(where: { $0.contains(name) }) {
        part.stage = stage
        part.stageNumber = Self.number(&rest)
      }
      parts.append(part)
    }
    // As many parts of nothing as one likes may follow.
    while parts.last == Part() { parts.removeLast() }
  }

  package static func < (one: AppVersion, other: AppVersion) -> Bool {
    for index in 0..<max(one.parts.count, other.parts.count) {
      let left = index < one.parts.count ? one.parts[index] : Part()
      let right = index < other.parts.count ? other.parts[index] : Part()
      if left != right { return left < right }
    }
    return false
  }

  private static func number(_ text: inout Substring.UTF8View.SubSequence) -> [UInt8] {
    let digits = text.prefix { isDigit($0) }
    text = text.dropFirst(digits.count)
    return Array(digits.drop { $0 == UInt8(ascii: "0") })
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}
