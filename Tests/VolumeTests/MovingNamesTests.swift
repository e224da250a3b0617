// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// When a name that moves to a closed directory is withdrawn alone.
@Suite struct MovingNamesTests {
  private let moving = MovingNames(isTakingOver: false)
  private static let object = ObjectNumber(inode: 77, device: 1)
  private static let (open, closed) = (ObjectNumber(inode: 5, device: 1), ObjectNumber(inode: 6, device: 1))
  /// Threads that live.
  private let own = ProcessID.own
  private let other: Int32 = 1

  private func rename(
    _ name: String = "x", to newName: String = "y", by thread: Int32? = nil, of user: UInt32 = 7,
    call: String? = "a", in moving: MovingNames? = nil
  ) -> MovingNames.Answer {
    let move = MovingNames.Move(
      directory: Self.open, name: Array(name.utf8), newDirectory: Self.closed, newName: Array(newName.utf8))
    return (moving ?? self.moving).answer(move, of: Self.object, by: thread ?? own, of: user) { _ in call }
  }

  private func look(_ name: String = "x", in directory: ObjectNumber = Self.open, by thread: Int32? = nil)
    throws
    -> Bool
  {
    try name.withName { (name) throws(Errno) in moving.covers(name, in: directory, by: thread ?? own) }
  }

  @Test func theNameIsLookedUpAgainAndWithdrawn() throws {
    #expect(try !look())
    #expect(rename() == .again)
    // Nobody keeps it meanwhile, and other names are not concerned.
    #expect(try look(by: other) && !look("z") && !look(in: Self.closed))
    #expect(try look())
    #expect(rename() == .withdrawn)
    #expect(try !look(), "it is over")
    #expect(rename() == .again, "the next one is another one")
  }

  @Test func whatLinuxDoesNotBeginAgainIsRefusedOnce() throws {
    #expect(rename() == .again)
    #expect(try look(by: other))
    #expect(rename() == .refused, "its own thread has not looked it up")
    #expect(try !look())
    // No rename(2), or none that can be told.
    #expect(rename(call: nil) == .refused && rename(by: 0) == .refused)
    #expect(rename() == .again)
    #expect(try look())
    #expect(rename(call: "b") == .again && rename("z", call: "b") == .again, "another call, another name")
    moving.end(own)
    #expect(try !look("z") && !look())
    // Whoever was told ESTALE of something else is not told so a second time.
    moving.noteStale(own)
    #expect(rename() == .refused)
    #expect(rename() == .again)
  }

  @Test func anAnswerThatMayBeUnderWayCounts() throws {
    moving.noteTold(Self.object, to: own)
    #expect(rename() == .again, "whoever renames has all their answers")
    #expect(try look())
    #expect(rename() == .withdrawn)
    moving.noteTold(Self.object, to: other)
    #expect(rename() == .refused)
    moving.noteTold(ObjectNumber(inode: 78, device: 1), to: other)
    #expect(rename() == .refused, "another object says nothing of it")
    // One that has come between the two.
    let later = MovingNames(isTakingOver: false)
    #expect(rename(in: later) == .again)
    later.noteTold(Self.object, to: other)
    #expect(rename(in: later) == .refused)
  }

  @Test func answersArriveInTime() throws {
    let now = coarseSeconds()
    moving.noteTold(Self.object, to: other, at: now &- 20)
    #expect(rename() == .again)
    moving.end(own)
    // Who has ended has the answer; numbers of threads are far below this one.
    moving.noteTold(Self.object, to: Int32.max)
    #expect(rename() == .again)
    moving.end(own)
    moving.noteTold(Self.object, to: own)
    #expect(rename() == .again, "also of several of whom the others have ended")
    moving.end(own)
    moving.noteTold(Self.object, to: other)
    #expect(rename() == .refused, "one of two lives")
    // What another worker has answered nobody knows.
    #expect(rename(in: MovingNames(isTakingOver: true)) == .refused)
  }

  @Test func fewWaitAtATime() {
    let answers = (Int32(0)..<100).map { rename(by: 1_000_000 + $0) }
    #expect(answers.count { $0 == .again } == 32 && answers.last == .refused)
    #expect(rename(by: 2_000_000, of: 8) == .again, "another user has a share of their own")
  }
}
