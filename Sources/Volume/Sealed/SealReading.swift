// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Threads that read large files for their seals, so that no worker is held up by it: opens of a file wait for the one reading of
/// it, and for nothing else.
final class SealReading: Sendable {
  /// A node of a view.
  struct Key: Hashable {
    let view: UInt32
    let node: UInt64
  }
  private struct State {
    /// Who waits for what is being read, or will be.
    var waiting: [Key: [@Sendable () -> Void]] = [:]
    var pending: [(key: Key, work: @Sendable () -> Void)] = []
    var threads = 0
  }
  private let state = Mutex(State())
  private static let threadLimit = max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)))

  /// Does `work`, unless the same is under way; calls `then` when it is done.
  func read(_ key: Key, work: @escaping @Sendable () -> Void, then: @escaping @Sendable () -> Void) {
    let isHelpNeeded = state.withLock { state -> Bool in
      if state.waiting[key] != nil {
        state.waiting[key]?.append(then)
        return false
      }
      state.waiting[key] = [then]
      state.pending.append((key, work))
      guard state.threads < Self.threadLimit else { return false }
      state.threads += 1
      return true
    }
    guard isHelpNeeded else { return }
    if let thread = try? JoinableThread(name: "insula-seal", { self.run() }) {
      thread.detach()
    } else {
      run()
    }
  }

  /// Reads what there is to read, and ends.
  private func run() {
    while true {
      let next = state.withLock { state -> (key: Key, work: @Sendable () -> Void)? in
        guard !state.pending.isEmpty else {
          state.threads -= 1
          return nil
        }
        return state.pending.removeFirst()
      }
      guard let next else { return }
      next.work()
      let waiting = state.withLock { $0.waiting.removeValue(forKey: next.key) ?? [] }
      for then in waiting { then() }
    }
  }
}
