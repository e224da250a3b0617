// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct RemoveTreeTests {
  private let temporary: TemporaryDirectory

  init() throws { temporary = try TemporaryDirectory() }

  private func remove(_ name: String) throws {
    let directory = try temporary.open()
    try name.withName { (name) throws(Errno) in try directory.fd.removeTree(name) }
  }

  @Test func removesAFileALinkAndAnEmptyDirectory() throws {
    try temporary.write("x", to: "file")
    try temporary.makeDirectory("kept")
    #expect(symlink("kept", temporary.appending("link")) == 0)
    try temporary.makeDirectory("empty")
    for name in ["file", "link", "empty"] { try remove(name) }
    #expect(try temporary.names() == ["kept"])
  }

  @Test func followsNoLinkOutOfTheTree() throws {
    try temporary.makeDirectory("outside")
    try temporary.write("kept", to: "outside/file")
    try temporary.makeDirectory("gone")
    #expect(symlink("../outside", temporary.appending("gone/link")) == 0)
    #expect(symlink("../outside/file", temporary.appending("gone/file")) == 0)
    try remove("gone")
    #expect(try temporary.names() == ["outside"])
    #expect(temporary.text(of: "outside/file") == "kept")
  }

  @Test func depthCostsNeitherStackNorDescriptors() throws {
    // Deeper than any path can say, so it is made from the inside.
    var directory = try temporary.open()
    for _ in 0..<3000 {
      directory = try "d".withName { (name) throws(Errno) in
        try directory.fd.makeDirectory(name, mode: 0o700)
        return try directory.fd.openDirectory(name)
      }
    }
    try remove("d")
    #expect(try temporary.names() == [])
  }

  @Test func rightsThatTheOwnerTookAwayAreNoObstacle() throws {
    try temporary.makeDirectory("a")
    try temporary.makeDirectory("a/b")
    try temporary.write("x", to: "a/b/file")
    #expect(chmod(temporary.appending("a/b"), 0) == 0)
    #expect(chmod(temporary.appending("a"), 0) == 0)
    try remove("a")
    #expect(try temporary.names() == [])
  }

  @Test func namesThatItUsesItselfAreNoObstacle() throws {
    try temporary.makeDirectory("a")
    for name in ["a/.removing-1", "a/.removing-2", "a/b", "a/b/c", "a/b/c/d"] {
      try temporary.makeDirectory(name)
    }
    try temporary.write("x", to: "a/.removing-1/file")
    try temporary.write("x", to: "a/b/c/d/file")
    try remove("a")
    #expect(try temporary.names() == [])
  }

  @Test(.enabled(if: Program.isRoot, "mounting a filesystem needs root"))
  func staysOutOfOtherFilesystems() throws {
    try temporary.makeDirectory("a")
    try temporary.makeDirectory("a/mounted")
    #expect(mount("tmpfs", temporary.appending("a/mounted"), "tmpfs", 0, nil) == 0)
    try temporary.write("kept", to: "a/mounted/file")
    #expect(throws: Errno.self) { try remove("a") }
    #expect(temporary.text(of: "a/mounted/file") == "kept")
  }
}
