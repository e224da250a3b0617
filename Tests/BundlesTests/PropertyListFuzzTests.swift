// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import PropertyLists
internal import TestSupport
internal import Testing

/// Bytes that were property lists before something happened to them.
@Suite struct PropertyListFuzzTests {
  /// All inputs of a run; `make fuzz` asks for a million.
  static let inputs = fuzzInputs(usually: 100_000)

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
      for _ in 0..<Int.random(in: 1...4, using: &random) { ByteDamage.act(&bytes, samples, &random) }
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
  @Test(arguments: [5, 6] as [UInt64])
  func noSealStopsTheReader(seed: UInt64) throws {
    let bundle = try TestBundle(.contents)
    try TestBundle.makeSmall(at: bundle.base + "/PlugIns/B.appex", .flat, "org.example.plugin")
    try bundle.sign()
    let xml = try TestBundle.read(bundle.base + "/_CodeSignature/CodeResources")
    let samples = [xml, try PropertyList(reading: xml).binary()]
    var random = SeededRandom(seed: seed)
    var accepted = 0
    // Each has all the rules in it, which take their time.
    let inputs = getenv("INSULA_FUZZ") == nil ? Self.inputs / 100 : Self.inputs / 2
    for _ in 0..<inputs {
      var bytes = samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...3, using: &random) { ByteDamage.act(&bytes, samples, &random) }
      guard let seal = try? ResourceSeal(reading: bytes), seal.isSecondVersion else { continue }
      accepted += 1
      if let written = try? seal.codeResources() { #expect(try ResourceSeal(reading: written) == seal) }
    }
    #expect(accepted > inputs / 100)
  }
}
