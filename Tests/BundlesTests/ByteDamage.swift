// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import TestSupport

/// What random accidents do to bytes, some of them with a sense for what the bytes mean.
enum ByteDamage {
  private static let words: [[UInt8]] = [
    "<array>", "</array>", "<dict>", "<key>", "<!--", "-->", "<![CDATA[", "]]>", "&#", "&#x10ffff;", "&amp;",
    "\u{feff}", "0x", "-", "<string/>", "(", "[", "{9,99}", "*", "|", "$",
  ].map { Array($0.utf8) }

  static func act(_ bytes: inout [UInt8], _ samples: [[UInt8]], _ random: inout SeededRandom) {
    guard !bytes.isEmpty else { return }
    let at = Int.random(in: 0..<bytes.count, using: &random)
    // Where a binary list says how it is to be read.
    let late = max(0, bytes.count - 1 - at % 40)
    switch Int.random(in: 0..<9, using: &random) {
    case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 1: bytes[late] = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &random) ?? 0
    case 2: bytes[late] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    case 3: bytes.removeSubrange(at..<min(bytes.count, at + 8))
    case 4: bytes.insert(contentsOf: words.randomElement(using: &random) ?? [], at: at)
    case 5: bytes = Array(bytes.prefix(at))
    case 6: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 40)], at: at)
    case 7:
      guard let other = samples.randomElement(using: &random), other.count > at else { return }
      bytes.replaceSubrange(at..., with: other[at...])
    default: bytes[at] = UInt8.random(in: 0...255, using: &random)
    }
  }
}
