// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The connection of a view to its kernel, for use by threads of all views.
final class KernelLink: Sendable {
  private struct State {
    var connection: (any Connection)?
    /// How many are speaking.
    var notifiers = 0
    var device: UInt32?
  }
  private let state = OrderedMutex(.leaf, State())
  /// How many threads have found that the kernel must drop something, and have not yet notified it.
  ///
  /// A later thread finds no record, and must not return before the kernel knows.
  let attributesUnderWay = Atomic<Int>(0)
  let namesUnderWay = Atomic<Int>(0)
  /// Until when nobody waits for answers to arrive, since one has not in time.
  let awaitsAgain = Atomic<UInt64>(0)

  private let hasPassthrough = Atomic<Bool>(false)
  private let hasDirectMaps = Atomic<Bool>(false)
  private let epochs = Atomic<UInt32>(0)

  /// Counts how often the kernel was told to look up every name again; never 0.
  ///
  /// The kernel looks up a name from an earlier epoch again before it uses it.
  var epoch: UInt16 {
    UInt16(truncatingIfNeeded: epochs.load(ordering: .sequentiallyConsistent) % 65_535) + 1
  }

  /// A thread increments `namesUnderWay` first, then the epoch, and then notifies the kernel.
  ///
  /// So a thread that sees the new epoch before the kernel knows of it notifies the kernel too.
  func beginEpoch() { epochs.wrappingAdd(1, ordering: .sequentiallyConsistent) }

  /// For a thread that serves a request of this very kernel, so that the connection can't end meanwhile.
  var connection: (any Connection)? { state.withLock { $0.connection } }

  /// The minor number of the mount's device, which stays the same.
  var device: UInt32? {
    let (known, connection) = state.withLock { ($0.device, $0.connection) }
    guard known == nil, let found = connection?.device else { return known }
    state.withLock { $0.device = found }
    return found
  }

  /// What the connection says of it, without asking the connection.
  var passthrough: Bool { hasPassthrough.load(ordering: .relaxed) }

  /// Whether the kernel makes shared maps of what is opened past its page cache.
  var sharesDirectMaps: Bool { hasDirectMaps.load(ordering: .relaxed) }

  func begin(_ connection: any Connection) {
    state.withLock { $0.connection = connection }
    hasDirectMaps.store(connection.sharesDirectMaps, ordering: .releasing)
    hasPassthrough.store(connection.passthrough, ordering: .releasing)
  }

  /// When this returns, no thread uses the connection any more.
  func end() {
    hasPassthrough.store(false, ordering: .relaxed)
    state.withLock { $0.connection = nil }
    // Notifications never wait for long: see Connection.
    while state.withLock({ $0.notifiers }) > 0 { sched_yield() }
  }

  /// Sends notifications to the kernel, from any thread, if the connection still exists.
  func notify(_ body: (any Connection) -> Void) {
    let connection = state.withLock { state in
      if state.connection != nil { state.notifiers += 1 }
      return state.connection
    }
    guard let connection else { return }
    body(connection)
    state.withLock { $0.notifiers -= 1 }
  }

  /// Has the kernel write back and forget the contents of files.
  func forgetContents(of files: some Sequence<NodeID>) {
    notify { connection in for file in files { connection.contentsChanged(file) } }
  }
}
