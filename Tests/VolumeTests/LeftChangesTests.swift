// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What another worker has noted, and what of it is found on the disk.
struct LeftChangesTests {
  private func intents(_ memory: SharedMemory, worker: Int) -> Intents {
    Intents(in: memory.whole, isKept: worker > 0, worker: worker)
  }
  private let request = RequestID(40)
  private let again = RequestID(40 | 1 << 63)

  @Test func notedChangesAreFoundByTheRequestThatIsSentAgain() throws {
    let memory = try SharedMemory("test", size: Intents.size)
    let first = intents(memory, worker: 0)
    let note = first.begin(request, view: 1, ObjectNumber(inode: 5, device: 6), before: 7)
    var next = intents(memory, worker: 1)
    let left = try #require(next.left(by: again, view: 1))
    #expect(left.object == ObjectNumber(inode: 5, device: 6) && left.before == 7 && left.isDone == 0)
    #expect(next.left(by: request, view: 1) == nil && next.left(by: again, view: 2) == nil)
    first.end(note, result: 9)
    next = intents(memory, worker: 1)
    let done = try #require(next.left(by: again, view: 1))
    #expect(done.isDone == 1 && done.result == 9)
    next.forgetLeft()
    #expect(next.left(by: again, view: 1) == nil)
    #expect(intents(memory, worker: 2).left(by: again, view: 1) == nil)
  }

  @Test func whatWasNotMadeIsNotNoted() throws {
    let memory = try SharedMemory("test", size: Intents.size)
    let first = intents(memory, worker: 0)
    first.drop(first.begin(request, view: 1))
    #expect(intents(memory, worker: 1).left(by: again, view: 1) == nil)
  }

  /// The first of several workers may have made the change, and each may have noted that it is made.
  @Test func severalWorkersNoteTheSameChange() throws {
    let memory = try SharedMemory("test", size: Intents.size)
    _ = intents(memory, worker: 0).begin(request, view: 1, before: 1)
    let second = intents(memory, worker: 1)
    second.end(second.begin(again, view: 1, before: 2), result: 3)
    let left = try #require(intents(memory, worker: 2).left(by: again, view: 1))
    #expect(left.before == 1 && left.isDone == 1 && left.result == 3)
  }

  @Test func whatThisWorkerMakesIsNew() throws {
    let temporary = try TemporaryDirectory()
    let memory = try SharedMemory("test", size: Intents.size)
    try temporary.write("", to: "old")
    _ = intents(memory, worker: 0).begin(request, view: 1)
    let next = intents(memory, worker: 1)
    try temporary.write("", to: "new")
    for name in ["old", "new"] {
      let file = try FD.cwd.open(temporary.appending(name), O_RDONLY)
      guard try file.fd.creationTime() != nil else { return }
      #expect(next.isNew(file.fd) == (name == "new"))
    }
  }

  @Test(arguments: [
    ("abcXYZ", 3, 3), ("abcXY", 3, 2), ("abc", 3, 0), ("abcQQXYZ", 3, 3), ("abcQQ", 3, 0), ("abcXQZ", 3, 0),
    ("abcXYZXYZ", 3, 3), ("abcXYZ", 9, 0), ("abcXYZ", -1, 0), ("abcXYZ", Int64.min, 0), ("", Int64.max, 0),
  ])
  func appendedBytesAreCounted(contents: String, size: Int64, expected: Int) throws {
    let temporary = try TemporaryDirectory()
    try temporary.write(contents, to: "file")
    let file = try FD.cwd.open(temporary.appending("file"), O_RDWR)
    let found = try withBytes("XYZ") { (bytes) throws(Errno) in
      try file.fd.lengthAppended(of: bytes, since: size)
    }
    #expect(found == expected)
  }
}
