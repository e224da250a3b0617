// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Each user's grants are locked by themselves.
struct GrantMovesTests {
  private let moves = GrantMoves()

  /// Whether somebody else gets the locks of these users in time.
  private func areFree(_ users: Set<UInt32>, within milliseconds: Int) throws -> Bool {
    let isDone = Condition(false)
    let thread = try JoinableThread(name: "other") { [moves] in
      moves.hold(users).end()
      isDone.change { $0 = true }
    }
    thread.detach()
    return isDone.wait(milliseconds: milliseconds) { $0 }
  }

  @Test func nobodyWaitsForAnotherUser() throws {
    let hold = moves.hold([1, 2])
    #expect(try areFree([3], within: 20_000))
    #expect(try !areFree([2], within: 50))
    #expect(try !areFree([2, 3], within: 50))
    hold.end()
    #expect(try areFree([1, 2], within: 20_000))
  }

  @Test func whoDoesNotWaitGoesWithoutIt() throws {
    var begun: [UInt32] = []
    let hold = moves.hold([1])
    hold.end()
    moves.withLockIfFree(of: 1) {
      begun.append(1)
      #expect((try? areFree([1], within: 50)) == false)
    }
    #expect(try areFree([1], within: 20_000))
    #expect(begun == [1])
  }

  /// Two who need each other's lock besides their own get both, one after the other.
  @Test func twoThatNeedEachOthersDoNotWaitForEver() throws {
    let (ready, isOver) = (Condition(0), Condition(0))
    let inside = Condition(0)
    let threads = try (1...2 as ClosedRange<UInt32>).map { user in
      try JoinableThread(name: "user \(user)") { [moves] in
        var hold = moves.hold([user])
        ready.change { $0 += 1 }
        ready.wait { $0 == 2 }
        hold.widen { [1, 2] }
        #expect(hold.users == [1, 2])
        #expect(inside.withLock { $0 } == 0)
        inside.withLock { $0 += 1 }
        sched_yield()
        inside.withLock { $0 -= 1 }
        hold.end()
        isOver.change { $0 += 1 }
      }
    }
    try #require(isOver.wait(milliseconds: 20_000) { $0 == 2 })
    for thread in threads { thread.join() }
  }
}
