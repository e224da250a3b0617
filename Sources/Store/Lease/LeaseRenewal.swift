// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

/// Renews leases until they are released or lost, and sees to it that it is noticed when one is over.
///
/// One thread renews all of them in turn, so they should be of one place: one that does not answer holds up
/// the others. A write may hang for longer than a lease lasts, so another thread watches the time. Both end
/// with the last lease.
package final class LeaseRenewal: Sendable {
  /// Nil when the last one has gone.
  private let leases: Condition<[StoreLease]?>
  private let say: @Sendable (String) -> Void

  package init(_ lease: StoreLease, _ say: @escaping @Sendable (String) -> Void) throws(Errno) {
    leases = Condition([lease])
    self.say = say
    lease.isRenewed(by: self)
    do throws(Errno) {
      let watching = try JoinableThread(name: "lease-watch") { [self] in watch() }
      watching.detach()
      let renewing = try JoinableThread(name: "lease") { [self] in renew() }
      renewing.detach()
    } catch {
      remove(lease)
      throw error
    }
  }

  package var isOver: Bool { leases.withLock { $0 == nil } }

  /// False if the last one has gone.
  package func add(_ lease: StoreLease) -> Bool {
    leases.withLock { leases in
      guard leases != nil else { return false }
      lease.isRenewed(by: self)
      leases?.append(lease)
      return true
    }
  }

  func remove(_ lease: StoreLease) {
    leases.change { leases in
      leases?.removeAll { $0 === lease }
      if leases?.isEmpty == true { leases = nil }
    }
  }

  /// One that is added meanwhile lasts for longer than this waits.
  private func watch() {
    while let known = leases.withLock({ $0 }) {
      for lease in known where !lease.deadline.check() { remove(lease) }
      let left = known.map(\.deadline.nanosecondsLeft).filter { $0 > 0 }.min() ?? 0
      _ = leases.wait(milliseconds: min(Int(left / 1_000_000) + 1, 60_000)) { $0 == nil }
    }
  }

  private func renew() {
    var hasFailed = false
    while let pause = leases.withLock({ $0?.first?.milliseconds }) {
      _ = leases.wait(milliseconds: hasFailed ? max(1, pause / 5) : pause) { $0 == nil }
      var failure: Errno?
      for lease in leases.withLock({ $0 }) ?? [] {
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
