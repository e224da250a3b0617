// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Documents that a user opens with an app that runs already, until the app takes them.
///
/// One offer at a time, so that nobody can pile them up. The next worker begins without: an app asks it anew,
/// and whoever has offered something has lost the connection and starts the app.
final class OpenedDocuments: Sendable {
  private struct State {
    /// How many calls of the app wait for documents.
    var calls = 0
    /// When it has last taken some, and is to ask again soon.
    var taken: UInt64 = 0
    /// Paths below the root of the tree; none if only the app itself was opened.
    var offered: [String]?
  }

  /// How long an app has to take documents, or to ask for the next ones; one that hangs takes longer.
  static let patienceMilliseconds = 5000

  /// Changed when the app takes what is offered.
  private let state = Condition(State())

  /// A call of the app, which waits as long as this exists.
  final class Call: Sendable {
    private let documents: OpenedDocuments

    fileprivate init(_ documents: OpenedDocuments) {
      self.documents = documents
      documents.state.withLock { $0.calls += 1 }
    }

    deinit { documents.state.withLock { $0.calls -= 1 } }

    /// Takes what is offered.
    func take() -> [String]? {
      documents.state.change { state in
        guard let offered = state.offered.take() else { return nil }
        state.taken = monotonicNanoseconds()
        return offered
      }
    }
  }

  /// Begins a call of the app.
  func wait() -> Call { Call(self) }

  /// Whether the app waits for documents, or has just taken some.
  var areAwaited: Bool {
    let now = monotonicNanoseconds()
    return state.withLock { state in
      state.calls > 0
        || state.taken != 0 && now &- state.taken < UInt64(Self.patienceMilliseconds) * 1_000_000
    }
  }

  /// Offers documents, and returns whether the app has taken them before the time was up.
  ///
  /// It never takes them after that. `tell` is called when there is something to take.
  func offer(_ paths: [String], tell: () -> Void) -> Bool {
    let isOffered = state.withLock { state in
      guard state.offered == nil else { return false }
      state.offered = paths
      return true
    }
    guard isOffered else { return false }
    tell()
    if state.wait(milliseconds: Self.patienceMilliseconds, until: { $0.offered == nil }) { return true }
    return state.withLock { state in
      guard state.offered.take() != nil else { return true }
      state.taken = 0
      return false
    }
  }
}
