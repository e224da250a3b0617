// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Glibc
internal import TestSupport
internal import Testing

@Suite struct CodeDirectoryTests {
  static let parts = SealedParts(
    identifier: "org.example.note", version: "1.2", infoPlistDigest: digest(1),
    codeResourcesDigest: digest(3),
    entitlementsDigest: digest(5), executableSize: 5000, executablePageDigests: digest(7) + digest(8))

  static func digest(_ byte: UInt8) -> [UInt8] { [UInt8](repeating: byte, count: 32) }

  @Test func directoryComesBackAsItWent() throws {
    let directory = CodeDirectory(Self.parts, team: "TEAM1")
    let back = try CodeDirectory(directory.bytes)
    #expect(back == directory)
    #expect(back.bytes == directory.bytes)
    #expect(back.differences(from: Self.parts) == [])
  }

  /// Field by field as in Apple's header, so that a reader of Apple's form finds what it looks for.
  @Test func formIsApples() throws {
    let bytes = CodeDirectory(Self.parts, team: "TEAM1").bytes
    func number(_ offset: Int) -> Int { bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
    func text(_ offset: Int) -> String {
      String(decoding: bytes[offset...].prefix { $0 != 0 }, as: UTF8.self)
    }
    #expect(number(0) == 0xfade_0c02)
    #expect(number(4) == bytes.count)
    #expect(number(8) == 0x20400)
    #expect(text(number(20)) == "org.example.note")
    #expect(text(number(48)) == "TEAM1")
    #expect([number(24), number(28), number(32)] == [5, 2, 5000])
    #expect(Array(bytes[36..<40]) == [32, 2, 0, 12])
    // The digests of parts are counted backwards from those of pages.
    let pages = number(16)
    for (slot, byte) in [(1, 1), (2, 0), (3, 3), (4, 0), (5, 5), (0, 7), (-1, 8)] as [(Int, UInt8)] {
      #expect(Array(bytes[(pages - slot * 32)..<(pages - slot * 32 + 32)]) == Self.digest(byte), "\(slot)")
    }
    #expect(bytes.count == pages + 2 * 32)
  }

  @Test(arguments: [0x20200, 0x20300, 0x20400, 0x20500] as [UInt32])
  func versionsAreRead(version: UInt32) throws {
    var directory = CodeDirectory(Self.parts, team: "TEAM1")
    directory.version = version
    directory.flags = 0x10000
    if version == 0x20500 { directory.runtime = 0x0b_0000 }
    #expect(try CodeDirectory(directory.bytes) == directory)
  }

  @Test func largeExecutablesHaveTheirSizeInTheLongField() throws {
    var directory = CodeDirectory(identifier: "a", team: "T")
    directory.executableSize = 1 << 32
    directory.pageDigests = [UInt8](repeating: 9, count: (1 << 20) * 32)
    let back = try CodeDirectory(directory.bytes)
    #expect(back.executableSize == 1 << 32)
    #expect(back.pageDigests.count == directory.pageDigests.count)
  }

  /// Each damage with a word of the reason.
  static let damages: [(String, @Sendable (inout [UInt8]) -> Void)] = [
    ("magic", { $0[0] = 0 }),
    ("length", { $0.append(0) }),
    ("length", { $0.removeLast() }),
    ("length", { $0[7] ^= 1 }),
    ("version", { $0[10] = 9 }),
    ("identifier is misplaced", { $0[23] ^= 1 }),
    ("digests are misplaced", { $0[19] ^= 32 }),
    ("digests are misplaced", { $0[27] = 4 }),
    ("digests are misplaced", { $0[27] = 17 }),
    ("pages", { $0[31] = 3 }),
    ("pages", { $0[28] = 0xff }),
    ("pages", { $0[34] = 0xff }),
    ("digest", { $0[36] = 20 }),
    ("digest", { $0[37] = 1 }),
    ("platform", { $0[38] = 1 }),
    ("page size", { $0[39] = 14 }),
    ("must be empty", { $0[43] = 1 }),
    ("scattered", { $0[47] = 1 }),
    ("team is misplaced", { $0[51] ^= 1 }),
    ("digests are misplaced", { $0.replaceSubrange(48..<52, with: [0, 0, 0, 0]) }),
    ("must be empty", { $0[55] = 1 }),
    ("two sizes", { $0[63] = 1 }),
    ("segments", { $0[87] = 1 }),
    ("identifier is empty", { $0[88] = 0 }),
    ("identifier is not text", { $0[88] = 0xff }),
    ("identifier is not text", { $0[89] = 10 }),
    ("unknown part 4", { $0[88 + 17 + 6 + 32] = 1 }),
    ("truncated", { $0 = Array($0.prefix(4)) + [0, 0, 0, 30] + Array($0[8..<30]) }),
  ]

  @Test(arguments: damages.indices)
  func damagesAreRefusedByName(index: Int) {
    let (reason, damage) = Self.damages[index]
    var bytes = CodeDirectory(Self.parts, team: "TEAM1").bytes
    damage(&bytes)
    do {
      _ = try CodeDirectory(bytes)
      Issue.record("\(reason) was taken")
    } catch {
      #expect(error.reason.contains(reason), "\(error.reason)")
    }
  }

  @Test func emptyBytesAreRefused() {
    #expect(throws: MalformedCodeDirectory.self) { try CodeDirectory([]) }
  }

  /// Each change of a part with what is found; the first that counts is the one that is told.
  static let changes: [(Finding.Kind, @Sendable (inout SealedParts) -> Void)] = [
    (.otherBundle, { $0.identifier = "org.example.other" }),
    (.infoPlistAltered, { $0.infoPlistDigest[31] ^= 1 }),
    (.codeResourcesAltered, { $0.codeResourcesDigest = digest(9) }),
    (.noCodeResources, { $0.codeResourcesDigest = nil }),
    (.entitlementsAltered, { $0.entitlementsDigest = digest(9) }),
    (.entitlementsAltered, { $0.entitlementsDigest = nil }),
    (.executableAltered, { $0.executableSize = 5001 }),
    (.executableAltered, { $0.executablePageDigests[63] ^= 0x80 }),
  ]

  @Test(arguments: changes.indices)
  func changedPartsAreFound(index: Int) {
    let (kind, change) = Self.changes[index]
    var parts = Self.parts
    change(&parts)
    #expect(CodeDirectory(Self.parts, team: "TEAM1").differences(from: parts).map(\.kind) == [kind])
  }

  @Test func partThatWasNotSealedMustNotAppear() {
    var sealed = Self.parts
    sealed.entitlementsDigest = nil
    let directory = CodeDirectory(sealed, team: "TEAM1")
    #expect(directory.differences(from: sealed) == [])
    #expect(directory.differences(from: Self.parts).map(\.kind) == [.entitlementsAltered])
  }

  /// Requirements that someone sealed would have to be met, and nobody here can tell.
  @Test func sealedRequirementsAreNotPassedOver() {
    var directory = CodeDirectory(Self.parts, team: "TEAM1")
    directory.digests[.requirements] = Self.digest(2)
    #expect(directory.differences(from: Self.parts).map(\.kind) == [.malformedCodeDirectory])
  }

  @Test func cdhashIsTheDigestCutToTwentyBytes() throws {
    let hash = try CodeDirectory.cdhash(of: Array("abc".utf8))
    #expect(
      hash == [
        0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23, 0xb0,
        0x03,
        0x61, 0xa3,
      ])
  }

  /// Whatever is read comes out as it was: no byte is without meaning.
  @Test func noInputStopsTheReader() throws {
    var random = SeededRandom(seed: 4)
    let samples = [
      CodeDirectory(Self.parts, team: "TEAM1").bytes, CodeDirectory(identifier: "a", team: nil).bytes,
    ]
    let inputs = fuzzInputs(usually: 100_000)
    var taken = 0
    for _ in 0..<inputs {
      var bytes = samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        guard !bytes.isEmpty else { continue }
        // The header has the offsets, so it is hit more often.
        let limit = Bool.random(using: &random) ? min(bytes.count, 96) : bytes.count
        let at = Int.random(in: 0..<limit, using: &random)
        switch Int.random(in: 0..<5, using: &random) {
        case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[at] = [0, 1, 0x7f, 0x80, 0xff].randomElement(using: &random) ?? 0
        case 2: bytes = Array(bytes.prefix(at))
        case 3:
          bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 32)], at: at)
          let count = UInt32(bytes.count)
          if bytes.count > 8 {
            for index in 0..<4 { bytes[4 + index] = UInt8(count >> (24 - 8 * index) & 0xff) }
          }
        default: for index in at..<min(at + 4, bytes.count) { bytes[index] = 0xff }
        }
      }
      guard let directory = try? CodeDirectory(bytes) else { continue }
      taken += 1
      #expect(directory.bytes.count <= bytes.count)
      #expect(try CodeDirectory(directory.bytes) == directory)
    }
    #expect(taken > inputs / 100)
  }
}
