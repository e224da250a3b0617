// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Synchronization

/// How long a daemon takes to answer one request of ours.
///
/// A thread asks it: who asks a daemon that does not answer can't do anything else, and could not even be
/// ended by what is typed.
final class RoundTrip: Sendable {
  private struct State {
    var last: UInt64?
    var isUnderWay = false
  }
  private let state = Mutex(State())

  /// Begins another one; gives what the one before took, in nanoseconds.
  ///
  /// Nil if it has not come back, or if this process may not ask.
  func measure(at mountPoint: String) -> UInt64? {
    let before: UInt64?? = state.withLock { state in
      if state.isUnderWay { return nil }
      state.isUnderWay = true
      return .some(state.last)
    }
    guard let before else { return nil }
    let thread = try? JoinableThread(name: "round-trip") { [self] in
      // The kernel does not remember what is free on a filesystem, so it has to ask.
      var filesystem = statvfs()
      let start = monotonicNanoseconds()
      let isAnswered = statvfs(mountPoint, &filesystem) == 0
      end(isAnswered ? monotonicNanoseconds() - start : nil)
    }
    if let thread { thread.detach() } else { end(nil) }
    return before
  }

  private func end(_ nanoseconds: UInt64?) {
    state.withLock { $0 = State(last: nanoseconds) }
  }
}
