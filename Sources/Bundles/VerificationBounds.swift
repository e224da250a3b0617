// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// What a verification may take that is done for somebody else; the bundles in a bundle share it.
///
/// What a seal lists is as much as a trusted signer has signed. All else may have been added by anybody who
/// can copy the bundle: it is charged to the user for whom the bundle is verified, and soon ends the walk.
package final class VerificationBounds: Sendable {
  /// One finding refuses a bundle, and a few say what is wrong with it.
  static let mostFindings = 100
  /// What all verifications of this process may take that are done for others.
  private static let shared = Budget(Budget.Limits(descriptors: 0), daemonUser: ProcessID.user)

  private struct State {
    var findings = 0
    var bytes = 0
    /// Why there is no use in going on.
    var end: Finding?
  }
  private let state = Mutex(State())
  private let isCancelled: @Sendable () -> Bool
  private let budget: Budget
  private let payer: Payer

  /// `isCancelled` is asked now and then, by any thread.
  package init(user: UInt32, isCancelled: @escaping @Sendable () -> Bool) {
    self.isCancelled = isCancelled
    budget = Self.shared
    payer = Payer(user: user)
  }

  init(user: UInt32, _ budget: Budget, isCancelled: @escaping @Sendable () -> Bool = { false }) {
    self.isCancelled = isCancelled
    self.budget = budget
    payer = Payer(user: user)
  }

  deinit { budget.give(.memory, state.withLock(\.bytes), by: payer) }

  /// Why it has ended before all was looked at; nil as long as it goes on.
  var end: Finding? {
    if let end = state.withLock(\.end) { return end }
    guard isCancelled() else { return nil }
    return stop(Finding(.unreadable, detail: "the verification was cancelled"))
  }

  /// Takes note of something for which the bundle will be refused.
  func addFinding() {
    let isMuch = state.withLock {
      $0.findings += 1
      return $0.findings >= Self.mostFindings
    }
    if isMuch { _ = stop(Finding(.unreadable, detail: "too much is wrong with it")) }
  }

  /// Takes note of memory that is kept; ends where the user has taken too much.
  func take(_ bytes: Int) {
    guard budget.takeQuietly(.memory, bytes, by: payer) else {
      _ = stop(Finding(.unreadable, detail: "it contains too much that is not in its seal"))
      return
    }
    state.withLock { $0.bytes += bytes }
  }

  private func stop(_ finding: Finding) -> Finding {
    state.withLock {
      let end = $0.end ?? finding
      $0.end = end
      return end
    }
  }
}
