// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import TestSupport
internal import Testing

/// Bytes that were property lists before something happened to them.
@Suite struct PropertyListFuzzTests {
  /// All inputs of a run; `make fuzz` asks for a million.
  static let inputs = getenv("INSULA_FUZZ").flatMap { Int(String(cString: $0)) } ?? 100_000

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func noInputStopsTheReader(seed: UInt64) throws {
    var lists = RandomPropertyLists(seed: seed)
    var samples: [[UInt8]] = []
    while samples.count < 60 {
      let value = lists.value(depth: 3)
      for bytes in [try value.xml(), try value.binary()] where bytes.count < 1200 { samples.append(bytes) }
    }
    var random = SeededRandom(seed: seed)
    var accepted = 0
    for _ in 0..<(Self.inputs / 4) {
      var bytes = samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...4, using: &random) { Self.damage(&bytes, samples, &random) }
      guard let value = try? PropertyList(reading: bytes) else { continue }
      accepted += 1
      // What was accepted means one thing.
      #expect(try PropertyList(reading: value.binary()) == value)
      // XML has no fractions of seconds, and one dictionary that stands for something else.
      if let xml = try? value.xml() { #expect(try PropertyList(reading: xml).xml() == xml) }
    }
    #expect(accepted > Self.inputs / 100)
  }

  /// Seals, with patterns of rules in them.
  @Test func noSealStopsTheReader() throws {
    let bundle = try TestBundle(.contents)
    try bundle.sign()
    let xml = try TestBundle.read(bundle.base + "/_CodeSignature/CodeResources")
    let samples = [xml, try PropertyList(reading: xml).binary()]
    var random = SeededRandom(seed: 5)
    var accepted = 0
    for _ in 0..<(Self.inputs / 50) {
      var bytes = samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...3, using: &random) { Self.damage(&bytes, samples, &random) }
      guard let seal = try? ResourceSeal(reading: bytes), seal.isSecondVersion else { continue }
      accepted += 1
      if let written = try? seal.codeResources() { #expect(try ResourceSeal(reading: written) == seal) }
    }
    #expect(accepted > Self.inputs / 5000)
  }

  private static let words: [[UInt8]] = [
    "<array>", "</array>", "<dict>", "<key>", "<!--", "-->", "<![CDATA[", "]]>", "&#", "&#x10ffff;", "&amp;",
    "\u{feff}", "0x", "-", "<string/>", "(", "[", "{9,99}", "*", "|", "$",
  ].map { Array($0.utf8) }

  private static func damage(_ bytes: inout [UInt8], _ samples: [[UInt8]], _ random: inout SeededRandom) {
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
