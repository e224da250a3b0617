// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// What the kernel remembers must not let anyone past a directory that has been closed.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ClosedDirectoryTests {
  @Test(arguments: ["chmod", "chown", "rename", "list"], [nil, "nopassthrough,nohandles"])
  func nobodyGetsPastADirectoryThatIsClosed(how: String, options: String?) throws {
    let mounted = try MountedStore.mounted(options: options)
    let base = mounted.path("Users/Shared/")
    let owner = try Client(uid: 54321)
    #expect(try owner.errno("mkdir", base + "open", "\(0o755)") == 0)
    #expect(try owner.errno("mkdir", base + "private", "\(0o700)") == 0)
    #expect(try owner.errno("mkdir", base + "open/sub", "\(0o755)") == 0)
    for name in ["open/file", "open/sub/file"] {
      #expect(try owner.errno("create", base + name, "\(0o644)") == 0)
    }
    let state = try HammerState(mounted.temporary.appending("state"))
    state.set(2)
    let stranger = try Client(uid: 54322)
    // A closed directory's missing names are its business too, but to find that one is missing is no success
    // here.
    try stranger.send(
      "hammer", mounted.temporary.appending("state"), base + "open/file", base + "open/sub/file")
    #expect(state.waitForAttempt(allowed: true, 2))
    for round in 1...200 {
      switch how {
      case "chmod": #expect(chmod(base + "open", 0o700) == 0)
      case "chown": #expect(chown(base + "open", 54321, 54321) == 0 && chmod(base + "open", 0o750) == 0)
      case "list":
        let list = AccessControlList([AccessControlEntry(.deny, .user(54322), [.list, .search])]).filesec
        #expect(lsetxattr(base + "open", "system.insula.acl", list, list.count, 0) == 0)
      default: #expect(rename(base + "open", base + "private/open") == 0)
      }
      state.set(2 * round + 1)
      #expect(state.waitForAttempt(allowed: false, 2 * round + 1))
      state.set(2 * round + 2)
      switch how {
      case "rename": #expect(rename(base + "private/open", base + "open") == 0)
      case "list": #expect(lremovexattr(base + "open", "system.insula.acl") == 0)
      default: #expect(chmod(base + "open", 0o755) == 0)
      }
      #expect(state.waitForAttempt(allowed: true, 2 * round + 2))
    }
    state.set(-1)
    let answer = try #require(try stranger.answer())
    #expect(answer.words.count == 2, "got in: \(answer)")
    #expect(try #require(answer.words.first.flatMap { Int($0) }) > 200)
  }

  /// A file that is moved into a private directory goes with all that is remembered of it.
  @Test func fileMovedIntoAPrivateDirectoryIsOutOfReach() throws {
    let mounted = try MountedStore.mounted()
    let base = mounted.path("Users/Shared/")
    let owner = try Client(uid: 54321)
    let stranger = try Client(uid: 54322)
    #expect(try owner.errno("mkdir", base + "private", "\(0o711)") == 0)
    for round in 0..<200 {
      #expect(try owner.errno("create", base + "file", "\(0o644)") == 0)
      #expect(try owner.errno("chmod", base + "private", "\(0o711)") == 0)
      #expect(try stranger.errno("stat", base + "file") == 0)
      #expect(try stranger.errno("stat", base + "private/file\(round)") == ENOENT)
      #expect(try owner.errno("rename", base + "file", base + "private/file\(round)") == 0)
      #expect(try stranger.errno("stat", base + "private/file\(round)") == 0)
      #expect(try owner.errno("chmod", base + "private", "\(0o700)") == 0)
      #expect(try stranger.errno("stat", base + "private/file\(round)") == EACCES)
      #expect(try stranger.errno("open", base + "private/file\(round)", "0") == EACCES)
      #expect(try stranger.errno("stat", base + "private/missing") == EACCES)
      #expect(try stranger.errno("list", base + "private") == EACCES)
    }
  }
}
