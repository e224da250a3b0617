// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import TestSupport
internal import Testing

@Suite struct FilesecTests {
  private func read(_ bytes: [UInt8]) throws -> AccessControlList? {
    try bytes.withUnsafeBytes { try AccessControlList(filesec: $0) }
  }

  private func refusal(_ bytes: [UInt8]) -> MalformedACL? {
    #expect(throws: MalformedACL.self) { try read(bytes) }
  }

  /// `everyone deny delete`, as a Mac keeps it.
  private static let everyoneDenyDelete: [UInt8] =
    [0x01, 0x2c, 0xc1, 0x6d] + [UInt8](repeating: 0, count: 32) + [0, 0, 0, 1, 0, 0, 0, 0]
    + [0xab, 0xcd, 0xef, 0xab, 0xcd, 0xef, 0xab, 0xcd, 0xef, 0xab, 0xcd, 0xef, 0, 0, 0, 0x0c]
    + [0, 0, 0, 2, 0, 0, 0, 0x10]

  @Test func isAppleByteForByte() throws {
    let acl = AccessControlList([AccessControlEntry(.deny, .everyone, .delete)])
    #expect(acl.filesec == Self.everyoneDenyDelete)
    #expect(try read(Self.everyoneDenyDelete) == acl)
  }

  /// In a backup it says whose file it belongs to, which makes no difference to the ACL.
  @Test func itMaySayWhoseFileItIs() throws {
    let acl = AccessControlList([AccessControlEntry(.deny, .everyone, .delete)])
    func owner(_ bytes: [UInt8]) -> Principal? {
      bytes.withUnsafeBytes { AccessControlList.owner(inFilesec: $0) }
    }
    #expect(owner(acl.filesec) == nil && owner([]) == nil && owner([1, 2, 3]) == nil)
    for user: UInt32 in [0, 1000, .max] {
      let bytes = acl.filesec(ownedBy: .user(user))
      #expect(owner(bytes) == .user(user) && bytes != acl.filesec && bytes.count == acl.filesec.count)
      #expect(try read(bytes) == acl)
      #expect(owner(Array(bytes.prefix(19))) == nil && owner(Array(bytes.dropFirst())) == nil)
    }
  }

  @Test(
    arguments: [
      (.permit, .user(501), .read, [], 0x1, 0x2),
      (.deny, .group(20), .write, .inherited, 0x12, 0x4),
      (.audit, .owner, .execute, .fileInherit, 0x23, 0x8),
      (.alarm, .owningGroup, .delete, .directoryInherit, 0x44, 0x10),
      (.permit, .nobody, .append, .limitInherit, 0x81, 0x20),
      (.permit, .user(0), .deleteChild, .onlyInherit, 0x101, 0x40),
      (.permit, .group(0), .readAttributes, .controls, 0x1e1, 0x80),
      (.permit, .group(12), .writeAttributes, [], 0x1, 0x100),
      (.permit, .user(.max), .readExtended, [], 0x1, 0x200),
      (.permit, .everyone, .writeExtended, [], 0x1, 0x400),
      (.permit, .everyone, .readSecurity, [], 0x1, 0x800),
      (.permit, .everyone, .writeSecurity, [], 0x1, 0x1000),
      (.permit, .everyone, .takeOwnership, [], 0x1, 0x2000),
      (.permit, .everyone, .synchronize, [], 0x1, 0x10_0000),
      (.permit, .everyone, .genericAll, [], 0x1, 0x20_0000),
      (.permit, .everyone, .genericExecute, [], 0x1, 0x40_0000),
      (.permit, .everyone, .genericWrite, [], 0x1, 0x80_0000),
      (.permit, .everyone, .genericRead, [], 0x1, 0x100_0000),
    ] as [(AccessControlEntry.Kind, Principal, Rights, AccessControlEntry.Inheritance, UInt32, UInt32)])
  func eachBitHasItsPlace(
    kind: AccessControlEntry.Kind, principal: Principal, rights: Rights,
    inheritance: AccessControlEntry.Inheritance, word: UInt32, rightsWord: UInt32
  ) throws {
    let acl = AccessControlList([AccessControlEntry(kind, principal, rights, inheritance)])
    let bytes = acl.filesec
    #expect(bytes.count == 68)
    #expect(Array(bytes[60..<64]) == withUnsafeBytes(of: word.bigEndian, Array.init))
    #expect(Array(bytes[64..<68]) == withUnsafeBytes(of: rightsWord.bigEndian, Array.init))
    #expect(try read(bytes) == acl)
  }

  @Test func emptyACLAndNoACLAreDifferent() throws {
    let empty = AccessControlList([], flags: .noInherit)
    #expect(try read(empty.filesec) == empty)
    var none = AccessControlList([]).filesec
    none.replaceSubrange(36..<40, with: [0xff, 0xff, 0xff, 0xff])
    #expect(try read(none) == nil)
  }

  @Test func ownerAndGroupAreNotLookedAt() throws {
    var bytes = Self.everyoneDenyDelete
    bytes.replaceSubrange(4..<36, with: 1...32)
    #expect(try read(bytes)?.filesec == Self.everyoneDenyDelete)
  }

  @Test func countIsLimited() throws {
    let entry = AccessControlEntry(.permit, .everyone, .read)
    let full = AccessControlList(Array(repeating: entry, count: 128))
    #expect(try read(full.filesec) == full)
    let over = AccessControlList(Array(repeating: entry, count: 129))
    #expect(refusal(over.filesec) == .tooManyEntries)
  }

  /// What is put where in the ACL of one entry, and the complaint.
  @Test(
    arguments: [
      (0, [0x6d, 0xc1, 0x2c, 0x01], "the magic number is missing"),
      (36, [0, 0, 0, 0], "its size does not match 0 entries"),
      (36, [0, 0, 0, 2], "its size does not match 2 entries"),
      (36, [0xff, 0xff, 0xff, 0xfe], "its size does not match 4294967294 entries"),
      (36, [0xff, 0xff, 0xff, 0xff], "there is no ACL, but data follows"),
      (40, [0, 4, 0, 0], "the ACL has an unknown flag"),
      (40, [0, 0, 0, 1], "the ACL has an unknown flag"),
      (60, [0, 0, 0, 0], "entry 0 has an unknown type"),
      (60, [0, 0, 0, 5], "entry 0 has an unknown type"),
      (60, [0, 0, 0, 15], "entry 0 has an unknown type"),
      (60, [0, 0, 2, 1], "entry 0 has an unknown flag"),
      (60, [0x80, 0, 0, 1], "entry 0 has an unknown flag"),
      (64, [0, 0, 0, 1], "entry 0 has an unknown right"),
      (64, [0, 0, 0x40, 0], "entry 0 has an unknown right"),
      (64, [2, 0, 0, 0], "entry 0 has an unknown right"),
    ] as [(Int, [UInt8], String)])
  func whatIsNotUnderstoodIsRefused(offset: Int, bytes: [UInt8], complaint: String) {
    var damaged = Self.everyoneDenyDelete
    damaged.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    #expect(refusal(damaged) == .malformed(complaint))
  }

  @Test func everyLengthButTheRightOneIsRefused() {
    for length in 0...200 where length != 68 {
      let bytes = Array((Self.everyoneDenyDelete + [UInt8](repeating: 0, count: 200)).prefix(length))
      guard case .malformed = refusal(bytes) else {
        Issue.record("\(length) bytes were taken")
        continue
      }
    }
  }

  private static let principals: [Principal] = [
    .user(0), .user(501), .user(.max), .group(0), .group(12), .group(10), .everyone, .owner, .owningGroup,
    .nobody,
    Principal(high: 1, low: 2),
  ]

  @Test func listsComeBackAsTheyWent() throws {
    var random = SeededRandom(seed: 1)
    for _ in 0..<5_000 {
      let acl = random.acl(of: Self.principals)
      #expect(try read(acl.filesec) == acl)
    }
  }

  /// Whatever is read must be what writing it gives; all else is refused, and nothing traps.
  @Test func damagedBytesAreRefusedOrMeanWhatTheySay() throws {
    var random = SeededRandom(seed: 2)
    var read = 0
    for _ in 0..<100_000 {
      let bytes = random.mutated(random.acl(of: Self.principals, maximumCount: 3).filesec)
      guard let acl = try? self.read(bytes) else { continue }
      read += 1
      var plain = bytes
      plain.replaceSubrange(4..<36, with: repeatElement(0, count: 32))
      guard acl.filesec == plain else {
        Issue.record("\(bytes) became \(acl)")
        return
      }
    }
    // The mutations reach both sides.
    #expect(read > 1_000 && read < 99_000)
  }

  @Test func eachGroupHasOneNumber() {
    for gid in [0, 10, 12, 16, 20, 500, .max - 1, .max] as [UInt32] {
      #expect(Principal.group(gid).meaning == .group(gid))
    }
    // Beside Apple's numbers there are only the groups that Apple's leave no place for.
    let low = Principal.group(12).low & 0xffff_ffff_0000_0000
    #expect(Principal(high: Principal.group(12).high, low: low | 500).meaning == .foreign)
  }
}
