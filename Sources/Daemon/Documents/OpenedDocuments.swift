// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Documents that a user opens with an app that runs already, until the app takes them.
///
/// One offer at a time, so that nobody can pile them up. The next worker begins without: an app asks it anew,
/// and whoever has offered something has lost the connection and starts the app.
final class OpenedDocuments: Sendable {
  private struct State {
    /// Whether the app has asked, and has taken in time what it was offered since.
    var isAwaited = false
    /// Paths below the root of the tree; none if only the app itself was opened.
    var offered: [String]?
  }

  /// Changed when the app takes what is offered.
  private let state = Condition(State())

  /// Whether the app takes documents.
  var areAwaited: Bool { state.withLock { $0.isAwaited } }

  /// Takes what is offered; for the app, which is known to await documents from then on.
  func take() -> [String]? {
    state.change { state in
      state.isAwaited = true
      return state.offered.take()
    }
  }

  /// Offers documents, and returns whether the app has taken them before the time was up.
  ///
  /// It never takes them after that. An app that lets the time pass is offered nothing until it asks again.
  /// `tell` is called when there is something to take.
  func offer(_ paths: [String], milliseconds: Int, tell: () -> Void) -> Bool {
    let isOffered = state.withLock { state in
      guard state.isAwaited, state.offered == nil else { return false }
      state.offered = paths
      return true
    }
    guard isOffered else { return false }
    tell()
    if state.wait(milliseconds: milliseconds, until: { $0.offered == nil }) { return true }
    return state.withLock { state in
      guard state.offered.take() != nil else { return true }
      state.isAwaited = false
      return false
    }
  }
}
