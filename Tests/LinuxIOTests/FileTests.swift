// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct FileTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  @Test func replacedContentsAreWholeAndLeaveNothingBeside() throws {
    let directory = try temporary.open()
    try directory.fd.replaceContents(of: "a", with: Array("one".utf8), mode: 0o600)
    try directory.fd.replaceContents(of: "a", with: Array("two, longer".utf8), mode: 0o600)
    #expect(temporary.text(of: "a") == "two, longer")
    #expect(try temporary.names() == ["a"])
  }

  @Test func leftoverOfAnInterruptedReplacementIsNoObstacle() throws {
    let directory = try temporary.open()
    try temporary.write("half", to: ".a.new")
    try directory.fd.replaceContents(of: "a", with: Array("whole".utf8), mode: 0o600)
    #expect(try temporary.names() == ["a"])
    #expect(temporary.text(of: "a") == "whole")
  }

  @Test func contentsEndAtTheLimit() throws {
    try temporary.write(String(repeating: "x", count: 100_000), to: "a")
    let directory = try temporary.open()
    #expect(try directory.fd.contents(of: "a", limit: 70_000).count == 70_000)
    #expect(try directory.fd.contents(of: "a", limit: 200_000).count == 100_000)
  }

  @Test func contentsOfALinkAPipeAndADirectoryAreRefused() throws {
    try temporary.write("secret", to: "a")
    let directory = try temporary.open()
    #expect(symlink("a", temporary.appending("link")) == 0)
    #expect(mkfifo(temporary.appending("pipe"), 0o600) == 0)
    try temporary.makeDirectory("directory")
    #expect(throws: Errno.ELOOP) { try directory.fd.contents(of: "link", limit: 10) }
    #expect(throws: Errno.EINVAL) { try directory.fd.contents(of: "pipe", limit: 10) }
    #expect(throws: Errno.EINVAL) { try directory.fd.contents(of: "directory", limit: 10) }
  }

  @Test func entriesAreBytesAndCanBeReadTwice() throws {
    let odd: [UInt8] = [0x61, 0xff, 0x0a]
    let directory = try temporary.open()
    try odd.withName { (name) throws(Errno) in try directory.fd.makeDirectory(name, mode: 0o700) }
    for _ in 0..<2 {
      let entries = try directory.fd.entries()
      #expect(entries.map(\.name) == [odd])
      #expect(entries.map(\.type) == [UInt8(DT_DIR)])
    }
  }

  @Test func openDirectoryFollowsNoLink() throws {
    try temporary.makeDirectory("real")
    #expect(symlink("real", temporary.appending("link")) == 0)
    let directory = try temporary.open()
    #expect(throws: Errno.self) {
      try "link".withName { (name) throws(Errno) in _ = try directory.fd.openDirectory(name) }
    }
    try "real".withName { (name) throws(Errno) in _ = try directory.fd.openDirectory(name) }
  }

  @Test func ownedDescriptorIsClosedWithItsOwner() throws {
    var raw: Int32 = -1
    do {
      let directory = try temporary.open()
      raw = directory.fd.raw
      #expect(fcntl(raw, F_GETFD) & FD_CLOEXEC != 0)
    }
    // Another thread may have been given the same number meanwhile, but never for this directory.
    var status = stat()
    var original = stat()
    #expect(stat(temporary.path, &original) == 0)
    let isSame =
      fstat(raw, &status) == 0 && status.st_ino == original.st_ino && status.st_dev == original.st_dev
    #expect(!isSame)
  }

  @Test func lockExcludesTheSameProcessTooAndEndsWithItsOwner() throws {
    try temporary.write("", to: "lock")
    let path = temporary.appending("lock")
    func open() throws -> OwnedFD {
      try path.withName { (name) throws(Errno) in try FD.cwd.openFollowing(name, O_RDWR) }
    }
    let second = try open()
    do {
      let first = try open()
      #expect(try first.fd.tryLock(exclusive: true))
      #expect(try !second.fd.tryLock(exclusive: true))
      #expect(try !second.fd.tryLock(exclusive: false))
      #expect(try second.fd.isLockedByAnother())
      #expect(try !first.fd.isLockedByAnother())
    }
    #expect(try !second.fd.isLockedByAnother())
    #expect(try second.fd.tryLock(exclusive: true))
  }
}
