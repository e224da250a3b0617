// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// Whatever comes through the xattr aliases of ACLs and flags: a clear answer, and what is kept stays what it
/// was.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BadInputTests {
  private static let apple = "user.com.apple.system.Security"
  private static let plain = "system.insula.acl"
  private static let nfs4 = "system.nfs4_acl"
  private static let flags = "system.insula.flags"

  /// What an xattr alias may say to bytes that it does not understand.
  private static let refusals: [Errno] = [.EINVAL, .E2BIG, .EOPNOTSUPP]

  private let mounted: MountedStore
  private let path: String
  private let daemon: Int32

  init() throws {
    mounted = try MountedStore.mounted()
    path = mounted.path("Users/Shared/file")
    #expect(close(creat(path, 0o644)) == 0)
    daemon = try #require(try mounted.daemon())
  }

  /// The error, or nil if it was taken.
  private func set(_ alias: String, _ bytes: [UInt8]) -> Errno? {
    lsetxattr(path, alias, bytes, bytes.count, 0) == 0 ? nil : Errno.last
  }

  private func get(_ alias: String) -> [UInt8]? {
    var room = [UInt8](repeating: 0, count: 1 << 16)
    let count = lgetxattr(path, alias, &room, room.count)
    return count < 0 ? nil : Array(room[..<count])
  }

  private static let list = AccessControlList([
    AccessControlEntry(.deny, .user(54321), [.write, .delete]),
    AccessControlEntry(.permit, .group(54400), .read),
    AccessControlEntry(.permit, .everyone, [.read, .readAttributes]),
  ])

  /// The ACL in the form of an xattr alias.
  private func value(_ alias: String) throws -> [UInt8] {
    #expect(set(Self.plain, Self.list.filesec) == nil)
    return try #require(get(alias))
  }

  /// Sets what should be refused, and looks at what is left.
  private func expectRefused(_ alias: String, _ bytes: [UInt8], _ errnos: [Errno], _ what: String) {
    let errno = set(alias, bytes)
    #expect(errno.map { errnos.contains($0) } == true, "\(alias), \(what): \(errno?.message ?? "taken")")
    #expect(get(Self.plain) == Self.list.filesec, "\(alias), \(what)")
  }

  @Test(arguments: [plain, apple, nfs4])
  func whatIsCutOffIsRefused(alias: String) throws {
    let whole = try value(alias)
    for count in 0..<whole.count {
      if set(alias, Array(whole[..<count])) == nil {
        Issue.record("\(alias): \(count) of \(whole.count) bytes were taken")
        #expect(set(Self.plain, Self.list.filesec) == nil)
      }
      #expect(get(Self.plain) == Self.list.filesec)
    }
    for more in [1, 3, 4, 24, 1000] {
      expectRefused(alias, whole + [UInt8](repeating: 0, count: more), [.EINVAL], "\(more) bytes too many")
    }
    expectRefused(alias, [UInt8](repeating: 0xff, count: 1 << 16), Self.refusals, "the longest that there is")
    #expect(set(alias, whole) == nil)
  }

  /// Counts of all sizes, where a count is.
  @Test func countsThatDoNotHoldAreRefused() throws {
    for (alias, offset) in [(Self.plain, 36), (Self.apple, 36), (Self.nfs4, 0)] {
      let whole = try value(alias)
      for count: UInt32 in [
        0, 1, 2, 4, 127, 128, 129, 0xffff, 0x0aaa_aaab, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe,
      ] {
        var bytes = whole
        for byte in 0..<4 {
          bytes[offset + byte] = UInt8(truncatingIfNeeded: count >> (24 - 8 * UInt32(byte)))
        }
        expectRefused(alias, bytes, [.EINVAL, .E2BIG], "count \(count)")
      }
    }
    // The length of a name, and where it is followed by nothing.
    let whole = try value(Self.nfs4)
    for length: UInt32 in [0, 1, 7, 255, 0x1_0000, 0x7fff_fffd, 0x7fff_ffff, 0xffff_fffc, 0xffff_ffff] {
      var bytes = whole
      for byte in 0..<4 { bytes[16 + byte] = UInt8(truncatingIfNeeded: length >> (24 - 8 * UInt32(byte))) }
      expectRefused(Self.nfs4, bytes, Self.refusals, "name of \(length)")
    }
    for length in [1000, 5000, 60000] {
      let name = [UInt8](repeating: UInt8(ascii: "a"), count: length)
      let head: [UInt8] = [0, 0, 0, 1] + [UInt8](repeating: 0, count: 11) + [1]
      let count = [0, 0, UInt8(length >> 8), UInt8(length & 0xff)]
      expectRefused(Self.nfs4, head + count + name, Self.refusals, "name of \(length) letters")
    }
    let most = AccessControlList(Array(repeating: Self.list.entries[1], count: 128)).filesec
    var oneMore = most + most.suffix(24)
    oneMore[39] = 129
    for alias in [Self.plain, Self.apple] {
      #expect(set(alias, most) == nil)
      #expect(set(alias, oneMore) == .E2BIG)
      #expect(get(Self.plain) == most)
    }
  }

  /// Bytes that are changed at random are refused, or are an ACL: the one that is then there, through every
  /// xattr alias.
  @Test(arguments: [plain, apple, nfs4])
  func changedBytesAreRefusedOrMeanWhatTheySay(alias: String) throws {
    var random = SeededRandom(seed: 20_261_120)
    let whole = try value(alias)
    var taken = 0
    for round in 0..<600 {
      var bytes = whole
      for _ in 0...Int.random(in: 0..<4, using: &random) {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
        case 1:
          let bit = UInt8(1) << UInt8.random(in: 0..<8, using: &random)
          bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= bit
        case 2: bytes.removeLast(Int.random(in: 0..<min(8, bytes.count), using: &random))
        default:
          bytes.insert(.random(in: 0...255, using: &random), at: .random(in: 0...bytes.count, using: &random))
        }
        if bytes.isEmpty { bytes = [0] }
      }
      let before = get(Self.plain)
      if let errno = set(alias, bytes) {
        #expect(Self.refusals.contains(errno), "round \(round): \(errno)")
        #expect(get(Self.plain) == before, "round \(round)")
      } else {
        taken += 1
        let kept = get(Self.plain)
        // Whose file it is, is no business of its ACL.
        if alias != Self.nfs4, let kept {
          let ids = 4..<36
          bytes.replaceSubrange(ids, with: repeatElement(0, count: ids.count))
          #expect(kept == bytes, "round \(round)")
        }
        if let kept {
          #expect(set(Self.apple, kept) == nil && get(Self.plain) == kept, "round \(round)")
          // NFSv4 can't say everything; what it says is the same ACL.
          if let said = get(Self.nfs4) {
            #expect(set(Self.nfs4, said) == nil, "round \(round)")
            #expect(get(Self.nfs4) == said, "round \(round)")
          }
        }
        #expect(set(Self.plain, Self.list.filesec) == nil)
      }
    }
    #expect(taken > 0 && taken < 600)
    #expect(try mounted.daemon() == daemon)
  }

  @Test func randomBytesAreRefused() throws {
    var random = SeededRandom(seed: 7)
    for alias in [Self.plain, Self.apple, Self.nfs4, Self.flags] {
      _ = try value(alias)
      for round in 0..<150 {
        let count = Int.random(in: 1..<300, using: &random)
        let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
        expectRefused(alias, bytes, Self.refusals, "round \(round)")
      }
    }
    #expect(try mounted.daemon() == daemon)
  }

  @Test func wordsThatAreNoFlagsAreRefused() throws {
    #expect(set(Self.plain, Self.list.filesec) == nil)
    #expect(set(Self.flags, Array("hidden".utf8)) == nil)
    for words in [
      "UCHG", "uchg;hidden", "restricted", "compressed", "dataless", "tracked", "uchg\n", "uchg\0", "0x2",
      "hidden,nonsense", "noo", "no", String(repeating: "hidden,", count: 9_000) + "x",
    ] {
      let errno = set(Self.flags, Array(words.utf8))
      #expect(errno == .EINVAL, "\(words.prefix(20)): \(errno?.message ?? "taken")")
      #expect(get(Self.flags) == Array("hidden".utf8), "\(words.prefix(20))")
    }
    for (words, flags) in [
      ("nodump,", "nodump"), (" opaque\thidden", "opaque,hidden"), ("nohidden", ""), ("", ""),
      (String(repeating: "hidden,", count: 9_000), "hidden"),
    ] {
      #expect(set(Self.flags, Array(words.utf8)) == nil, "\(words.prefix(20))")
      #expect(get(Self.flags) == Array(flags.utf8), "\(words.prefix(20))")
    }
  }

  /// The room that a caller gives for a value: none asks how much is needed.
  @Test func roomForValues() throws {
    for alias in [Self.plain, Self.apple, Self.nfs4] {
      let whole = try value(alias)
      #expect(lgetxattr(path, alias, nil, 0) == whole.count)
      for count in [1, 3, whole.count - 1] {
        var room = [UInt8](repeating: 0, count: count)
        #expect(lgetxattr(path, alias, &room, count) == -1 && Errno.last == .ERANGE)
      }
    }
    // Of setxattr(2), the flags that ask for a new or for an existing attribute.
    let list = Self.list.filesec
    #expect(lsetxattr(path, Self.plain, list, list.count, 1) == -1 && Errno.last == .EEXIST)
    #expect(lsetxattr(path, Self.plain, list, list.count, 2) == 0)
    #expect(lremovexattr(path, Self.plain) == 0)
    #expect(lremovexattr(path, Self.plain) == -1 && Errno.last == .ENODATA)
    #expect(lsetxattr(path, Self.plain, list, list.count, 2) == -1 && Errno.last == .ENODATA)
    #expect(lsetxattr(path, Self.plain, list, list.count, 1) == 0)
  }
}
