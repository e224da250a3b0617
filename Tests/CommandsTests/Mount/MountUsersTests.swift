// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite(.enabled(if: Program.isRoot, "mounting needs root"))
struct MountUsersTests {
  /// One look at each process tells who uses any of several filesystems: a user can mount a great many.
  @Test func usersOfSeveralFilesystemsAreFoundAtOnce() throws {
    let temporary = try TemporaryDirectory()
    var (devices, users): (Set<DeviceNumber>, [Process]) = ([], [])
    defer {
      // A test's threads block what asks a process to end, and so do its children.
      for user in users {
        kill(user.processIdentifier, SIGKILL)
        user.waitUntilExit()
      }
      for name in ["one", "two", "three"] { umount2(temporary.appending(name), Int32(MNT_DETACH)) }
    }
    for name in ["one", "two", "three"] {
      let place = try temporary.makeDirectory(name)
      #expect(mount("none", place, "tmpfs", 0, nil) == 0)
      if name == "three" { continue }
      let root = try FD.cwd.openFollowing(place, O_RDONLY)
      devices.insert(try root.fd.deviceInMemory())
    }
    for name in ["two", "three"] {
      let user = Process()
      user.executableURL = URL(fileURLWithPath: "/bin/sleep")
      user.arguments = ["600"]
      user.currentDirectoryURL = URL(fileURLWithPath: temporary.appending(name))
      try user.run()
      users.append(user)
    }
    let first = try #require(users.first).processIdentifier
    let found = MountUsers.all(of: devices).users
    #expect(
      found.filter { $0.description.contains("sleep") && $0.description.contains("\(first)") }.count == 1)
    #expect(!found.contains { $0.description.contains("pid \(users[1].processIdentifier) ") })
  }
}
