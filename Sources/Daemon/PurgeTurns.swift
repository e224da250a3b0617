// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Rounds in which everybody's things are removed, each on a thread that is left alone if it does not get on.
///
/// A user who holds a file in the kernel makes the thread that removes it wait for as long as they like. Then
/// that round is over; the next ones leave the user out until the thread has come back.
final class PurgeTurns: Sendable {
  private let stalled = Mutex<Set<UInt32>>([])
  private let patience: UInt64

  /// Without a sign of life a thread counts as one that does not get on.
  init(patience: UInt64 = 30_000_000_000) { self.patience = patience }

  /// Does one round; nil if it has not got to its end.
  func run<Value: Sendable>(
    _ isCancelled: @escaping @Sendable () -> Bool, _ work: @escaping @Sendable (PurgeTurn) -> Value
  ) -> Value? {
    let turn = PurgeTurn(leavingOut: stalled.withLock { $0 }, isCancelled)
    let result = Condition<Value?>(nil)
    let thread = try? JoinableThread(name: "purging") { [self] in
      let value = work(turn)
      stalled.withLock { stalled in
        if let user = turn.end() { stalled.remove(user) }
      }
      result.change { $0 = value }
    }
    guard let thread else { return nil }
    thread.detach()
    while !result.wait(milliseconds: 1000, until: { $0 != nil }) {
      let user = stalled.withLock { stalled -> UInt32? in
        let user = turn.giveUp(after: patience)
        if let user { stalled.insert(user) }
        return user
      }
      guard let user else { continue }
      DaemonLog.write("what is removed of user \(user) does not get on; it is left out until it does")
      return nil
    }
    return result.withLock { $0 }
  }
}

/// One round, for whoever removes.
final class PurgeTurn: Sendable {
  private struct State {
    /// Whose things are being removed.
    var user: UInt32?
    var lived = monotonicNanoseconds()
    var isLost = false
    var isOver = false
  }
  private let state = Mutex(State())
  private let leftOut: Set<UInt32>
  private let isStopped: @Sendable () -> Bool

  fileprivate init(leavingOut: Set<UInt32>, _ isStopped: @escaping @Sendable () -> Bool) {
    leftOut = leavingOut
    self.isStopped = isStopped
  }

  /// Whether things of a user's may be removed, which begins then.
  func begins(_ user: UInt32) -> Bool {
    guard !leftOut.contains(user), !isCancelled else { return false }
    state.withLock { $0.user = user }
    return true
  }

  /// Asked again and again by whoever removes.
  var isCancelled: Bool {
    let isLost = state.withLock { state in
      state.lived = monotonicNanoseconds()
      return state.isLost
    }
    return isLost || isStopped()
  }

  /// Whose things it is at, if it has not got on for so long.
  fileprivate func giveUp(after nanoseconds: UInt64) -> UInt32? {
    state.withLock { state in
      guard !state.isOver, monotonicNanoseconds() &- state.lived >= nanoseconds else { return nil }
      if state.user != nil { state.isLost = true }
      return state.user
    }
  }

  /// Gives whose things it was at if it was given up.
  fileprivate func end() -> UInt32? {
    state.withLock { state in
      state.isOver = true
      return state.isLost ? state.user : nil
    }
  }
}
