// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import Synchronization

/// A view's way to its kernel, for its own threads and for those of other views.
final class KernelLink: Sendable {
  private struct State {
    var connection: (any Connection)?
    /// How many are speaking.
    var speakers = 0
    var device: UInt32?
  }
  private let state = Mutex(State())
  /// How many have found that the kernel must be made to forget something, and have not yet told it.
  ///
  /// Who comes after them finds nothing to tell, and must not return before the kernel knows.
  let attributesUnderWay = Atomic<Int>(0)
  let namesUnderWay = Atomic<Int>(0)

  private let hasPassthrough = Atomic<Bool>(false)
  private let epochs = Atomic<UInt32>(0)

  /// Counts how often the kernel was told to look up every name again; never 0.
  ///
  /// A name that it was told in an earlier epoch it looks up before it walks over it.
  var epoch: UInt16 {
    UInt16(truncatingIfNeeded: epochs.load(ordering: .sequentiallyConsistent) % 65_535) + 1
  }

  /// Whoever is about to tell the kernel so counts first, and has noted it in `namesUnderWay` before: who
  /// finds the new epoch while the kernel does not know of it tells it too.
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

  func begin(_ connection: any Connection) {
    state.withLock { $0.connection = connection }
    hasPassthrough.store(connection.passthrough, ordering: .releasing)
  }

  /// When this returns, nobody speaks to the kernel any more.
  func end() {
    hasPassthrough.store(false, ordering: .relaxed)
    state.withLock { $0.connection = nil }
    // What is said never waits for long: see Connection.
    while state.withLock({ $0.speakers }) > 0 { sched_yield() }
  }

  /// Lets any thread speak to the kernel, if it is still there.
  func speak(_ body: (any Connection) -> Void) {
    let connection = state.withLock { state in
      if state.connection != nil { state.speakers += 1 }
      return state.connection
    }
    guard let connection else { return }
    body(connection)
    state.withLock { $0.speakers -= 1 }
  }
}
