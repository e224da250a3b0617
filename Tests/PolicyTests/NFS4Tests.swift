// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import TestSupport
internal import Testing

@Suite struct NFS4Tests {
  @Test(arguments: capturedLists)
  func whatTheToolsSendIsUnderstood(captured: CapturedACL) {
    #expect([UInt8](hex: captured.hex).acl() == captured.meaning)
  }

  /// Byte for byte, wherever there is one way to say it.
  @Test func weWriteWhatTheToolsSend() throws {
    var same = 0
    for captured in capturedLists {
      guard case .success(let acl) = captured.meaning else { continue }
      // A flag too many, and a name with its domain: we write neither.
      let isOurWay = captured.typed != "f A:g:OWNER@:r" && captured.typed != "f A::alice@localdomain:r"
      #expect((try acl.nfs4(names: .sample) == [UInt8](hex: captured.hex)) == isOurWay, "\(captured.typed)")
      same += isOurWay ? 1 : 0
    }
    #expect(same == 32)
  }

  @Test func inheritedEntriesAreMarked() throws {
    let acl = AccessControlList([AccessControlEntry(.permit, .owner, .read, .inherited)])
    #expect(xdr(flags: 0x80).acl() == .success(acl))
    #expect(try acl.nfs4(names: .sample) == xdr(flags: 0x80))
  }

  @Test(
    arguments: [
      (.user(501), "alice", 0), (.group(501), "alice", 0x40), (.group(12), "man", 0x40), (.user(12), "12", 0),
      (.group(7), "7", 0x40), (.user(.max), "4294967295", 0), (.user(509), "élodie", 0),
      // The name of digits would be taken for 504.
      (.user(503), "503", 0), (.user(504), "carol", 0),
      (.user(505), "dora@directory.example", 0),
      // What is no name, or not theirs, is not written.
      (.user(506), "506", 0), (.user(508), "508", 0), (.user(510), "510", 0), (.user(511), "511", 0),
      (.owner, "OWNER@", 0), (.owningGroup, "GROUP@", 0x40), (.everyone, "EVERYONE@", 0),
    ] as [(Principal, String, UInt32)])
  func everyoneHasAName(principal: Principal, text: String, flags: UInt32) throws {
    let acl = AccessControlList([AccessControlEntry(.permit, principal, .read)])
    let bytes = xdr(flags: flags, who: Array(text.utf8))
    #expect(try acl.nfs4(names: .sample) == bytes)
    #expect(bytes.acl() == .success(acl))
  }

  @Test(
    arguments: [
      ("alice@localdomain", 0, .user(501)), ("users@localdomain", 0x40, .group(100)),
      ("EVERYONE@", 0x40, .everyone), ("OWNER@", 0x40, .owner), ("GROUP@", 0, .owningGroup),
      ("alice@elsewhere.example", 0, nil), ("alice@", 0, nil), ("@localdomain", 0, nil),
      ("alice@localdomain@elsewhere", 0, nil), ("users", 0, nil), ("bob", 0x40, nil), ("nosuch", 0, nil),
      ("007", 0, nil), ("4294967296", 0, nil), ("99999999999999999999999", 0, nil), ("+5", 0, nil),
      ("-1", 0, nil),
      ("٣", 0, nil), ("owner@", 0, nil), ("501@localdomain", 0, nil), (" alice", 0, nil),
    ] as [(String, UInt32, Principal?)])
  func namesAreThoseOfThisMachine(text: String, flags: UInt32, principal: Principal?) {
    let expected: Result<AccessControlList, MalformedACL> =
      principal.map { .success(AccessControlList([AccessControlEntry(.permit, $0, .read)])) }
      ?? .failure(.malformed("entry 0 is for an account that this machine does not have"))
    #expect(xdr(flags: flags, who: Array(text.utf8)).acl() == expected)
  }

  /// What NFSv4 has and a Mac has not.
  @Test(
    arguments: [
      (xdr(type: 2, flags: 0x10), "entry 0 is an audit or alarm entry"),
      (xdr(type: 3, flags: 0x20), "entry 0 is an audit or alarm entry"),
      (xdr(mask: 0x200), "entry 0 has a right of retention"),
      (xdr(mask: 0x400), "entry 0 has a right of retention"),
      (
        xdr(who: Array("AUTHENTICATED@".utf8)),
        "entry 0 is for AUTHENTICATED@, which exists only on a network"
      ),
      (
        xdr(flags: 0x40, who: Array("NETWORK@".utf8)),
        "entry 0 is for NETWORK@, which exists only on a network"
      ),
    ])
  func whatIsNotOursIsRefused(bytes: [UInt8], complaint: String) {
    #expect(bytes.acl() == .failure(.inexpressible(complaint)))
  }

  /// What a Mac has and NFSv4 has not.
  @Test(
    arguments: [
      (AccessControlList([], flags: .noInherit), "the ACL itself has flags"),
      (AccessControlList([], flags: .deferInherit), "the ACL itself has flags"),
      (one(.everyone, .genericRead), "entry 0 has a generic right"),
      (one(.everyone, [.read, .genericAll]), "entry 0 has a generic right"),
      (one(.everyone, .genericWrite), "entry 0 has a generic right"),
      (one(.everyone, .genericExecute), "entry 0 has a generic right"),
      (one(.nobody, .read), "entry 0 is for nobody"),
      (one(Principal(high: 1, low: 2), .read), "entry 0 is for an account of another machine"),
    ])
  func whatNFS4CanNotSayIsRefused(acl: AccessControlList, complaint: String) {
    #expect(throws: MalformedACL.inexpressible(complaint)) { try acl.nfs4(names: .sample) }
  }

  private static func one(_ principal: Principal, _ rights: Rights) -> AccessControlList {
    AccessControlList([AccessControlEntry(.permit, principal, rights)])
  }

  @Test(
    arguments: [
      ([], "it has no count"), ([0, 0, 0], "it has no count"),
      ([0, 0, 0, 0, 0], "data follows the last entry"),
      ([0, 0, 0, 1], "it is too short for 1 entries"),
      (xdr(count: .max), "it is too short for 4294967295 entries"),
      (xdr(count: 0x1000_0000), "it is too short for 268435456 entries"),
      (xdr(count: 2), "it is too short for 2 entries"),
      (xdr(count: 0), "data follows the last entry"),
      (xdr() + [0], "data follows the last entry"),
      (xdr() + [0, 0, 0, 0], "data follows the last entry"),
      (xdr().dropLast(), "entry 0 is truncated"), (xdr().dropLast(3), "entry 0 is truncated"),
      (xdr(length: 9), "entry 0 is truncated"),
      (xdr(length: 0), "entry 0 has a name of 0 bytes"),
      (xdr(length: .max), "entry 0 has a name of 4294967295 bytes"),
      (xdr(length: .max - 2), "entry 0 has a name of 4294967293 bytes"),
      (xdr(length: 1 << 31), "entry 0 has a name of 2147483648 bytes"),
      (xdr(who: [UInt8](repeating: 0x61, count: 257)), "entry 0 has a name of 257 bytes"),
      (xdr(filling: [0, 1]), "entry 0 is not padded with zeros"),
      (xdr(who: Array("root\0x".utf8)), "entry 0 has a name that is not text"),
      (xdr(who: [0xff, 0xfe]), "entry 0 has a name that is not text"),
      (xdr(type: 4), "entry 0 has an unknown type"), (xdr(type: .max), "entry 0 has an unknown type"),
      (xdr(flags: 0x100), "entry 0 has an unknown flag"),
      (xdr(flags: 1 << 31), "entry 0 has an unknown flag"),
      (xdr(mask: 0x800), "entry 0 has an unknown right"),
      (xdr(mask: 0x20_0000), "entry 0 has an unknown right"),
      (xdr(mask: 1 << 31), "entry 0 has an unknown right"),
      (xdr(count: 2, filling: [0, 0]) + xdr(type: 9).dropFirst(4), "entry 1 has an unknown type"),
    ] as [([UInt8], String)])
  func whatIsMalformedIsRefused(bytes: [UInt8], complaint: String) {
    #expect(bytes.acl() == .failure(.malformed(complaint)))
  }

  @Test func countIsLimited() {
    let entry = Array(xdr().dropFirst(4))
    let full: [UInt8] = [0, 0, 0, 128] + Array(repeating: entry, count: 128).joined()
    #expect((try? full.acl().get())?.entries.count == 128)
    let over: [UInt8] = [0, 0, 0, 129] + Array(repeating: entry, count: 129).joined()
    #expect(over.acl() == .failure(.tooManyEntries))
  }

  @Test func emptyACLIsAnACL() throws {
    #expect([UInt8](repeating: 0, count: 4).acl() == .success(AccessControlList([])))
    #expect(try AccessControlList([]).nfs4(names: .sample) == [0, 0, 0, 0])
  }

  @Test func listsComeBackAsTheyWent() throws {
    var random = SeededRandom(seed: 3)
    for _ in 0..<5_000 {
      let acl = random.acl(of: nameable, rights: Rights.all.union(.synchronize), flags: [])
      #expect(try acl.nfs4(names: .sample).acl() == .success(acl))
    }
  }

  /// Whatever is read is the same when it is written and read again; all else is refused, and nothing traps.
  @Test func damagedBytesAreRefusedOrMeanWhatTheySay() throws {
    var random = SeededRandom(seed: 4)
    var read = 0
    for _ in 0..<100_000 {
      let acl = random.acl(of: nameable, rights: Rights.all.union(.synchronize), flags: [], maximumCount: 3)
      let bytes = random.mutated(try acl.nfs4(names: .sample))
      guard case .success(let acl) = bytes.acl() else { continue }
      read += 1
      let again = try acl.nfs4(names: .sample)
      // Only the group flag of special names may differ, and a name may become another for the same account.
      guard again.acl() == .success(acl) else {
        Issue.record("\(bytes) became \(acl)")
        return
      }
    }
    // The mutations reach both sides.
    #expect(read > 1_000 && read < 99_000)
  }
}
