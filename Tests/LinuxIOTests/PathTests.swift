// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite final class PathTests {
  private let directory: TemporaryDirectory
  private let opened: OwnedFD

  init() throws {
    directory = try TemporaryDirectory()
    opened = try FD.cwd.openFollowing(directory.path, O_RDONLY | O_DIRECTORY)
    let one = try opened.fd.openDirectory("one", makingWith: 0o700)
    let two = try one.fd.openDirectory("two", makingWith: 0o700)
    try two.fd.replaceContents(of: "file", with: "text".utf8, mode: 0o600)
    try opened.fd.makeSymlink("link", to: "one")
  }

  @Test func walksNameByName() throws {
    let two = try opened.fd.openDirectory(at: "one/two")
    #expect(try two.fd.entries().map(\.name) == [Array("file".utf8)])
    #expect(try opened.fd.status(at: "one/two/file").st_size == 4)
    let names = ["one", "two"].map { Array($0.utf8) }
    let again = try opened.fd.openDirectory(at: names)
    #expect(try again.fd.status().st_ino == two.fd.status().st_ino)
  }

  @Test func emptyPathIsTheDirectoryOnceMore() throws {
    let again = try opened.fd.openDirectory(at: "")
    #expect(try again.fd.status().st_ino == opened.fd.status().st_ino)
    #expect(try again.fd.entries().count == opened.fd.entries().count)
  }

  @Test(arguments: ["link/two", "one/../one", "./one", "one/two/file", "missing"])
  func goesNowhereElse(_ path: String) throws {
    #expect(throws: Errno.self) { _ = try opened.fd.openDirectory(at: path) }
  }

  @Test func nothingIsAnErrorOfItsOwn() throws {
    #expect(throws: Errno.EINVAL) { _ = try opened.fd.status(at: "") }
    #expect(throws: Errno.ENOENT) { _ = try opened.fd.status(at: "one/three") }
  }

  @Test func namesMayBeTextBytesOrNames() throws {
    #expect(opened.fd.has("link"))
    #expect(opened.fd.has(Array("link".utf8)))
    #expect(!opened.fd.has("other"))
    #expect(try opened.fd.linkTarget(of: "link") == Array("one".utf8))
    try opened.fd.rename("link", to: opened.fd, Array("other".utf8), flags: 0)
    #expect(opened.fd.has("other"))
    let link = try opened.fd.child("other")
    #expect(try link.fd.linkTarget() == Array("one".utf8))
  }

  /// Whatever text it was made of, a name leads to no other directory.
  @Test(arguments: ["one/two", "one/../link", "/tmp", "link/", "../x"])
  func aPathIsNoName(_ path: String) throws {
    let directory = opened.fd
    #expect(throws: Errno.EINVAL) { _ = try directory.open(path, O_RDONLY) }
    #expect(throws: Errno.EINVAL) { _ = try directory.open(path, O_WRONLY | O_CREAT, mode: 0o600) }
    #expect(throws: Errno.EINVAL) { _ = try directory.status(of: path) }
    #expect(throws: Errno.EINVAL) { _ = try directory.linkTarget(of: path) }
    #expect(throws: Errno.EINVAL) { try directory.makeDirectory(path, mode: 0o700) }
    #expect(throws: Errno.EINVAL) { try directory.makeSymlink(path, to: "one") }
    #expect(throws: Errno.EINVAL) { try directory.remove(path, directory: false) }
    #expect(throws: Errno.EINVAL) { try directory.remove(path, directory: true) }
    #expect(throws: Errno.EINVAL) { try directory.rename(path, to: directory, "x", flags: 0) }
    #expect(throws: Errno.EINVAL) { try directory.rename("link", to: directory, path, flags: 0) }
    #expect(throws: Errno.EINVAL) {
      try path.withName { (name) throws(Errno) in
        _ = try directory.standing(of: name)
      }
    }
    #expect(throws: Errno.EINVAL) {
      let file = try directory.openUnnamed(O_RDWR, mode: 0o600)
      try path.withName { (name) throws(Errno) in try file.fd.link(into: directory, as: name) }
    }
    #expect(try Set(directory.entries().map(\.name)) == [Array("one".utf8), Array("link".utf8)])
  }

  @Test(arguments: [("a/b/c", "a/b", "c"), ("/a", "", "a"), ("a//b/", "a", "b"), ("", "", "")])
  func splitsAtTheLastName(_ path: String, _ above: String, _ name: String) {
    #expect(path.splitAtName == (above, name))
  }
}
