// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Renews leases until they are released or lost, and sees to it that it is noticed when one is over.
///
/// It has two threads, and none without leases. One renews all of them in turn, so they should be of one
/// place: one that does not answer holds up the others. A write may hang for longer than a lease lasts, so
/// the other thread watches the time.
package final class LeaseRenewal: Sendable {
  private struct State {
    var leases: [StoreLease] = []
    /// How many there have been.
    var additions = 0
    var isWatching = false
    var isRenewing = false
  }
  private let state = Condition(State())
  private let say: @Sendable (String) -> Void

  package init(_ say: @escaping @Sendable (String) -> Void) { self.say = say }

  package func add(_ lease: StoreLease) throws(Errno) {
    lease.isRenewed(by: self)
    try state.change { (state) throws(Errno) in
      if !state.isWatching {
        let thread = try JoinableThread(name: "lease-watch") { [self] in watch() }
        thread.detach()
        state.isWatching = true
      }
      if !state.isRenewing {
        let thread = try JoinableThread(name: "lease") { [self] in renew() }
        thread.detach()
        state.isRenewing = true
      }
      state.leases.append(lease)
      state.additions += 1
    }
  }

  func remove(_ lease: StoreLease) { state.change { $0.leases.removeAll { $0 === lease } } }

  private func watch() {
    while true {
      let (leases, additions) = state.withLock { state in
        if state.leases.isEmpty { state.isWatching = false }
        return (state.leases, state.additions)
      }
      if leases.isEmpty { return }
      for lease in leases where !lease.deadline.check() { remove(lease) }
      let left = leases.map(\.deadline.nanosecondsLeft).filter { $0 > 0 }.min() ?? 0
      _ = state.wait(milliseconds: min(Int(left / 1_000_000) + 1, 60_000)) {
        $0.leases.isEmpty || $0.additions != additions
      }
    }
  }

  private func renew() {
    var hasFailed = false
    while true {
      let pause = state.withLock { state -> Int? in
        if state.leases.isEmpty { state.isRenewing = false }
        return state.leases.first?.milliseconds
      }
      guard let pause else { return }
      _ = state.wait(milliseconds: hasFailed ? max(1, pause / 5) : pause) { $0.leases.isEmpty }
      var failure: Errno?
      for lease in state.withLock({ $0.leases }) {
        switch lease.renew() {
        case .done: break
        case .failed(let error): failure = error
        case .lost:
          lease.deadline.putOff(to: 0)
          lease.deadline.check()
          remove(lease)
        case .released: remove(lease)
        }
      }
      if !hasFailed, let failure { say("can't renew the lease: \(failure.message)") }
      hasFailed = failure != nil
    }
  }
}
