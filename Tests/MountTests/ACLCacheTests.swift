// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// No cache lets anybody past an ACL: once a change that closes something has returned, not one access
/// succeeds.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .serialized)
struct ACLCacheTests {
  private static let owner: UInt32 = 54321
  private static let stranger: UInt32 = 54322
  private static let team: UInt32 = 54400
  private static let alias = "system.insula.acl"
  private static let configurations: [String?] = [nil, "nopassthrough,nohandles"]

  /// How the owner closes something that is open to all, or to the stranger, and opens it again.
  enum Closing: String, CaseIterable {
    case mode, list, everyonesACL, groupsACL, permission, above, file

    /// The ways in which it is then closed.
    fileprivate var kinds: String {
      switch self {
      // Above a directory that can't be searched, and in a file, there is no ACL to be seen.
      case .mode, .list, .groupsACL, .permission, .above: "stat open list access attribute write"
      case .everyonesACL: "stat open access attribute write"
      case .file: "stat attribute"
      }
    }

    fileprivate var closed: AccessControlList {
      let list: AccessControlEntry =
        switch self {
        case .everyonesACL: AccessControlEntry(.deny, .everyone, .search)
        case .groupsACL: AccessControlEntry(.deny, .group(team), [.search, .list])
        case .file: AccessControlEntry(.deny, .user(stranger), [.readAttributes, .readExtended])
        default: AccessControlEntry(.deny, .user(stranger), [.search, .list])
        }
      return AccessControlList([list])
    }

    /// The ACL while it is open; nil for none.
    fileprivate var open: AccessControlList? {
      self == .permission
        ? AccessControlList([AccessControlEntry(.permit, .group(team), [.search, .list])]) : nil
    }
  }

  private func hex(_ list: AccessControlList) -> String {
    list.filesec.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  @Test(arguments: Closing.allCases, configurations)
  func nothingSucceedsOnceACloseHasReturned(how: Closing, options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let base = mounted.path("Users/Shared/")
    let owner = try Client(uid: Self.owner)
    for name in ["top", "top/dir", "top/dir/sub"] {
      #expect(try owner.errno("mkdir", base + name, "\(how == .permission ? 0o711 : 0o755)") == 0)
    }
    if how == .permission { #expect(try owner.errno("chmod", base + "top/dir", "\(0o700)") == 0) }
    let files = ["top/dir/file", "top/dir/sub/file"].map { base + $0 }
    for file in files {
      #expect(try owner.errno("create", file, "\(0o644)") == 0)
      #expect(try owner.errno("chmod", file, "\(0o666)") == 0)
      #expect(try owner.errno("setxattr", file, "user.note", "1") == 0)
    }
    if how == .permission { #expect(try owner.errno("chmod", base + "top/dir/sub", "\(0o755)") == 0) }
    let target = how == .above ? base + "top" : how == .file ? files[0] : base + "top/dir"
    func change(_ list: AccessControlList?, mode: UInt32) throws {
      let errno =
        switch (how, list) {
        case (.mode, _): try owner.errno("chmod", target, "\(mode)")
        case (_, let list?): try owner.errno("setxattr hex", target, Self.alias, hex(list))
        case (_, nil): try owner.errno("removexattr", target, Self.alias)
        }
      #expect(errno == 0)
    }
    if let list = how.open { try change(list, mode: 0) }
    let state = try HammerState(mounted.temporary.appending("state"))
    state.set(2)
    let stranger = try Client(uid: Self.stranger, groups: [Self.team])
    let hammered = how == .file ? [files[0]] : files
    try stranger.send(["hammer by", mounted.temporary.appending("state"), how.kinds] + hammered)
    #expect(state.waitForAttempt(allowed: true, 2))
    let rounds = 250
    for round in 1...rounds {
      if how == .permission { try change(nil, mode: 0) } else { try change(how.closed, mode: 0o700) }
      state.set(2 * round + 1)
      guard state.waitForAttempt(allowed: false, 2 * round + 1) else {
        Issue.record("nothing has been refused in round \(round)")
        break
      }
      state.set(2 * round + 2)
      try change(how.open, mode: 0o755)
      // Every other time there is nothing cached when it is closed again.
      guard round % 2 == 0 || state.waitForAttempt(allowed: true, 2 * round + 2) else {
        Issue.record("nothing has been allowed in round \(round)")
        break
      }
    }
    state.set(-1)
    let answer = try #require(try stranger.answer())
    #expect(answer.words.count == 2, "got in: \(answer)")
    let counts = answer.words.prefix(2).compactMap { Int($0) }
    #expect(counts.count == 2 && counts.allSatisfy { $0 > rounds / 2 }, "\(answer)")
  }

  /// Ways into a closed directory that do not lead through its name.
  @Test(arguments: configurations)
  func noOtherWayLeadsIn(options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let base = mounted.path("Users/Shared/")
    let owner = try Client(uid: Self.owner)
    let stranger = try Client(uid: Self.stranger)
    let inside = try Client(uid: Self.stranger)
    for name in ["dir", "dir/sub", "open"] {
      #expect(try owner.errno("mkdir", base + name, "\(0o755)") == 0)
    }
    for name in ["dir/file", "dir/other", "dir/sub/file"] {
      #expect(try owner.errno("create", base + name, "\(0o644)") == 0)
    }
    #expect(try owner.errno("link", base + "dir/file", base + "open/link") == 0)
    let read = "\(O_RDONLY)"
    let reference = "\(CLX_O_PATH)"
    let close = hex(AccessControlList([AccessControlEntry(.deny, .user(Self.stranger), [.search, .list])]))
    for _ in 0..<50 {
      // All of it is looked at and opened while that is allowed.
      #expect(try inside.errno("chdir", base + "dir") == 0)
      for name in ["dir/file", "dir/other", "dir/sub/file", "open/link"] {
        #expect(try stranger.errno("stat", base + name) == 0)
      }
      #expect(try stranger.run("list", base + "dir").words == ["5"])
      #expect(try stranger.run("open", base + "dir/file", read).words == ["0"])
      #expect(try stranger.errno("open", base + "dir", reference) == 0)
      #expect(try stranger.errno("open", base + "dir", "\(O_RDONLY | O_DIRECTORY)") == 0)
      #expect(try owner.errno("setxattr hex", base + "dir", Self.alias, close) == 0)
      // The other name of a file is another way to it, and what is open stays open.
      #expect(try stranger.errno("open", base + "open/link", read) == 0)
      #expect(try stranger.errno("close", "3") == 0)
      #expect(try stranger.errno("read", "0", "0") == 0)
      // By the name, by what was listed, from within, by what refers to the directory.
      for name in ["dir/file", "dir/other", "dir/sub/file", "dir/sub", "dir/missing"] {
        #expect(try stranger.errno("stat", base + name) == EACCES, "\(name)")
        #expect(try stranger.errno("open", base + name, read) == EACCES, "\(name)")
      }
      #expect(try stranger.errno("list", base + "dir") == EACCES)
      for name in ["file", "sub", "sub/file", "missing"] {
        #expect(try inside.errno("stat", name) == EACCES, "\(name)")
        #expect(try inside.errno("open", name, read) == EACCES, "\(name)")
      }
      #expect(try inside.errno("list", ".") == EACCES)
      #expect(try inside.errno("chdir", base + "dir") == EACCES)
      for index in [1, 2] {
        #expect(try stranger.errno("open at", "\(index)", "file", read) == EACCES)
        #expect(try stranger.errno("open at", "\(index)", "sub/file", read) == EACCES)
        #expect(try stranger.errno("open at", "\(index)", "..", reference) == 0)
      }
      #expect(try owner.errno("removexattr", base + "dir", Self.alias) == 0)
      #expect(try stranger.errno("close all") == 0)
    }
  }

  /// A file that may not be read has not become readable by what the kernel remembers of it.
  @Test(arguments: configurations)
  func dataThatWasReadByOthersIsNotShown(options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let file = mounted.path("Users/Shared/file")
    let owner = try Client(uid: Self.owner)
    let stranger = try Client(uid: Self.stranger)
    #expect(try owner.errno("create", file, "\(0o644)") == 0)
    #expect(try owner.errno("write", "0", "text") == 0)
    let close = hex(AccessControlList([AccessControlEntry(.deny, .user(Self.stranger), .read)]))
    for _ in 0..<200 {
      #expect(try stranger.errno("open", file, "\(O_RDONLY)") == 0)
      #expect(try owner.errno("setxattr hex", file, Self.alias, close) == 0)
      #expect(try owner.run("read", "0", "0").words == ["text"])
      #expect(try stranger.errno("open", file, "\(O_RDONLY)") == EACCES)
      #expect(try stranger.errno("open", file, "\(O_RDWR)") == EACCES)
      #expect(try stranger.errno("access", file, "\(R_OK)") == EACCES)
      #expect(try owner.errno("removexattr", file, Self.alias) == 0)
    }
  }
}
