// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import Glibc
internal import TestSupport
internal import Testing

/// Bytes that were code directories or signatures before something happened to them.
@Suite struct SignatureFuzzTests {
  /// All inputs of a run to each reader; `make fuzz` asks for a million.
  static let inputs = fuzzInputs(usually: 20_000)

  @Test(arguments: [1, 2] as [UInt64])
  func noCodeDirectoryStopsTheReader(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var samples: [[UInt8]] = []
    for version in [0x20200, 0x20300, 0x20400, 0x20500] as [UInt32] {
      var directory = CodeDirectory(CodeDirectoryTests.parts, team: "TEAM1")
      directory.version = version
      samples.append(directory.bytes)
      directory.digests[.entitlements] = nil
      directory.team = nil
      samples.append(directory.bytes)
    }
    var accepted = 0
    for _ in 0..<(Self.inputs / 2) {
      var bytes = samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...3, using: &random) { ByteDamage.act(&bytes, samples, &random) }
      guard let directory = try? CodeDirectory(bytes) else { continue }
      accepted += 1
      // No byte of it is without meaning.
      #expect(directory.bytes == bytes)
    }
    #expect(accepted > Self.inputs / 100)
  }

  /// Damaged signatures, their shape and what libcrypto makes of them: none but the very one that was made is
  /// taken.
  @Test(arguments: [3, 4] as [UInt64])
  func noSignatureStopsTheReader(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let root = try TestAuthority()
    let office = try root.intermediate { $0.basicConstraints = "critical,CA:TRUE" }
    let content = Array("content".utf8)
    let direct = try root.signer()
    let indirect = try office.signer()
    let samples = [
      try direct.signature(of: content), try indirect.signature(of: content, with: [office.certificate]),
    ]
    let trust = root.trust
    var reachedCrypto = 0
    for _ in 0..<(Self.inputs / 2) {
      let original = samples.randomElement(using: &random) ?? []
      var bytes = original
      for _ in 0..<Int.random(in: 1...2, using: &random) { ByteDamage.act(&bytes, samples, &random) }
      if (try? SignedMessageShape(bytes)) != nil { reachedCrypto += 1 }
      let isTaken = (try? trust.signer(of: content, by: bytes, at: testTime)) != nil
      #expect(!isTaken || samples.contains(bytes))
    }
    // Many damages leave the shape as it is, or else nothing but the shape was tried.
    #expect(reachedCrypto > Self.inputs / 100)
  }

  @Test func noRequirementStopsTheReader() throws {
    var random = SeededRandom(seed: 5)
    let samples = [Array(Requirement(identifier: "org.example.a", team: "TEAM1").description.utf8)]
    for _ in 0..<Self.inputs {
      var bytes = samples[0]
      for _ in 0..<Int.random(in: 1...3, using: &random) { ByteDamage.act(&bytes, samples, &random) }
      guard let requirement = Requirement(String(decoding: bytes, as: UTF8.self)) else { continue }
      // What was understood means one thing, unless it can't be said in quotes.
      if let again = Requirement(requirement.description) { #expect(again == requirement) }
    }
  }
}
