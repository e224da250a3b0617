// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// The sessions that a pool serves, by the keys that its epoll set knows them by.
final class Sessions: Sendable {
  private struct State {
    var byKey: [UInt64: ServedSession] = [:]
    var lastKey: UInt64 = 0
  }
  private let state = Mutex(State())

  func add(_ make: (UInt64) -> ServedSession) -> ServedSession {
    state.withLock { state in
      state.lastKey &+= 1
      let served = make(state.lastKey)
      state.byKey[served.key] = served
      return served
    }
  }

  /// Finds a session and enters it.
  func enter(_ key: UInt64) -> ServedSession? {
    state.withLock { state in
      guard let served = state.byKey[key] else { return nil }
      served.enter()
      return served
    }
  }

  /// Leaves a session; whoever leaves one that is over last ends it.
  func leave(_ served: ServedSession) {
    guard served.leave() else { return }
    _ = state.withLock { $0.byKey.removeValue(forKey: served.key) }
    served.end()
  }

  var isCrowded: Bool { state.withLock { $0.byKey.values.contains { $0.isCrowded } } }
}
