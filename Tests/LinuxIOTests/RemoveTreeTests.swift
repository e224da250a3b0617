// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
@testable internal import LinuxIO
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

  /// Whoever has it open makes names as fast as they are removed: in the top, deeper and deeper, or in the
  /// way of those that are moved, a few each time or many at once.
  @Test(arguments: ["top", "deeper", "in the way", "many in the way", "again"])
  func whoeverMakesNamesIsNotAwaited(where place: String) throws {
    for name in ["a", "a/b", "a/b/c"] { try temporary.makeDirectory(name) }
    try temporary.write("x", to: "a/b/c/file")
    var listings = 0
    let parent = try temporary.open()
    func make(in directory: FD) throws(Errno) {
      let top = try parent.fd.openDirectory("a")
      switch place {
      case "top":
        for number in 0..<10 { try top.fd.makeDirectory("\(listings)-\(number)", mode: 0o700) }
      case "again": try? top.fd.makeDirectory(".removing-1", mode: 0o700)
      case "many in the way":
        // In the directory of which one is about to be moved to the top.
        guard listings == 2 else { return }
        for number in 1...2000 { try top.fd.makeDirectory(".removing-\(number)", mode: 0o700) }
      default:
        // What is to be removed next has something in it, and so has to be moved.
        try directory.makeDirectory("d\(listings)", mode: 0o700)
        let made = try directory.openDirectory("d\(listings)")
        try made.fd.makeDirectory("e", mode: 0o700)
        guard place == "in the way" else { return }
        for number in 0..<50 { try? top.fd.makeDirectory(".removing-\(listings * 10 + number)", mode: 0o700) }
      }
    }
    #expect(throws: Errno.ENOTEMPTY) {
      try "a".withName { (name) throws(Errno) in
        try parent.fd.removeTree(name) { (directory) throws(Errno) in
          listings += 1
          // It would go on for as long as this does. To notice it takes some two thousand at most.
          if listings > 5000 { throw .ETIMEDOUT }
          try make(in: directory)
          return try directory.entries()
        }
      }
    }
    // And when nobody does that any more, the rest goes.
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
