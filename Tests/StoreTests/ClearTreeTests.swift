// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
@testable internal import LinuxIO
@testable internal import Store
internal import TestSupport
internal import Testing

/// ACLs and flags are taken away from a tree before it is removed, whatever programs do in it meanwhile.
@Suite struct ClearTreeTests {
  private let temporary: TemporaryDirectory
  private let access = SecurityAccess.store(Metadata(isSystem: Program.isRoot))

  init() throws {
    temporary = try TemporaryDirectory()
    for name in ["a", "a/A", "a/A/S", "a/B", "a/B/T"] { try temporary.makeDirectory(name) }
    for name in ["a/A/S/f", "a/B/T/f"] { try temporary.write("x", to: name) }
  }

  /// Clears the tree; `change` gets each object, how many there were, and whether it is a directory.
  private func clear(_ change: (FD, _ count: Int, _ isDirectory: Bool) throws -> Void) throws -> Int {
    var (count, failure) = (0, nil as (any Error)?)
    let parent = try temporary.open()
    try access.clearTree("a", in: parent.fd) { object in
      count += 1
      do { try change(object, count, object.status().isDirectory) } catch { failure = error }
    }
    if let failure { throw failure }
    return count
  }

  /// A program makes directories as fast as they are come to: deeper and deeper, or in all that there are.
  @Test(arguments: [1, 3]) func whoeverMakesDirectoriesIsNotAwaited(each: Int) throws {
    var seen = 0
    #expect(throws: Errno.ENOTEMPTY) {
      try clear { object, count, isDirectory in
        seen = count
        // It would go on for as long as this does.
        guard isDirectory, count < 20_000 else { return }
        for number in 0..<each { try object.makeDirectory("d\(number)", mode: 0o700) }
      }
    }
    #expect(seen > TreeGrowth.tolerated && seen < 2 * TreeGrowth.tolerated, "\(seen)")
    // When nobody does that any more, all of it is cleared and goes.
    let all = try clear { _, _, _ in }
    #expect(all > seen)
    let parent = try temporary.open()
    try access.removeTree("a", in: parent.fd)
    #expect(try temporary.names() == [])
  }

  /// A program moves a directory that was cleared to where it is come to once more.
  @Test func eachDirectoryIsEnteredOnce() throws {
    var (files, first) = (0, nil as UInt64?)
    let places = [("a/A/S", "a/B/T/S"), ("a/B/T", "a/A/S/T")]
    let inodes = try places.map { try inode($0.0) }
    _ = try clear { object, _, isDirectory in
      let inode = UInt64(try object.status().st_ino)
      guard let place = inodes.firstIndex(of: inode) else {
        if !isDirectory { files += 1 }
        return
      }
      guard let before = first else { return first = inode }
      guard before != inode else { return }
      let (from, to) = places[1 - place]
      try #require(rename(temporary.appending(from), temporary.appending(to)) == 0)
    }
    #expect(files == 2)
  }

  /// Users can make trees deeper than any path can say.
  @Test func depthCostsNeitherStackNorDescriptors() throws {
    let parent = try temporary.open()
    var directory = try parent.fd.openDirectory("a")
    for _ in 0..<3000 {
      directory = try "d".withName { (name) throws(Errno) in
        try directory.fd.makeDirectory(name, mode: 0o700)
        return try directory.fd.openDirectory(name)
      }
    }
    #expect(try clear { _, _, _ in } == 7 + 3000)
  }

  private func inode(_ name: String) throws -> UInt64 {
    var status = stat()
    try #require(lstat(temporary.appending(name), &status) == 0)
    return UInt64(status.st_ino)
  }
}
