// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What somebody holds in the kernel keeps nothing of others from being removed.
@Suite struct PurgeTurnsTests {
  private let turns = PurgeTurns(patience: 1_000_000_000)

  private func begin(_ users: [UInt32]) -> [Bool]? {
    turns.run({ false }) { turn in users.map { turn.begins($0) } }
  }

  @Test func whoHoldsTheThreadIsLeftOut() {
    let release = Condition(false)
    defer { release.change { $0 = true } }
    let first = turns.run({ false }) { turn in
      let begins = turn.begins(1000)
      _ = release.wait(milliseconds: 30_000) { $0 }
      // Whoever was given up goes on with nothing.
      return begins && !turn.isCancelled
    }
    #expect(first == nil)
    #expect(begin([1000, 1001]) == [false, true])
    #expect(begin([1002, 1000]) == [true, false])
    release.change { $0 = true }
    #expect(eventually { begin([1000, 1001]) == [true, true] })
  }

  @Test func whoeverGetsOnIsWaitedFor() {
    let end = monotonicNanoseconds() &+ 3_000_000_000
    let isDone = turns.run({ false }) { turn in
      var begins = turn.begins(1000)
      while monotonicNanoseconds() < end {
        _ = Condition(()).wait(milliseconds: 50) { _ in false }
        begins = begins && !turn.isCancelled
      }
      return begins
    }
    #expect(isDone == true)
  }

  @Test func nothingBeginsAtTheEnd() {
    #expect(turns.run({ true }) { turn in turn.begins(1000) } == false)
  }
}
