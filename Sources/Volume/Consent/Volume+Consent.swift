// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy
internal import Synchronization

/// Who has people asked keeps the volume, which must not keep them.
struct ConsentKeeperReference: Sendable {
  weak var keeper: (any ConsentKeeper)?
}

extension Volume {
  /// From here on, this one has people asked.
  package func ask(_ keeper: any ConsentKeeper) { consentKeeper.withLock { $0.keeper = keeper } }

  var consents: (any ConsentKeeper)? { consentKeeper.withLock { $0.keeper } }

  /// Puts some places into views of apps and takes others out.
  ///
  /// When this returns, the apps find what was put in, and nothing of what was taken out is found any more.
  /// What is under way there is yet to be waited for. Nothing is waited for here, not even for who changes
  /// where grants of that user lead.
  package func begin(_ changes: [ViewChange]) -> PendingWithdrawal {
    var pending = PendingWithdrawal()
    for change in changes {
      guard let holder = grants.holder(ofView: change.view), let view = grants.view(change.view)?.granted
      else { continue }
      view.beginChange(admitting: change.admitted, withdrawing: Set(change.withdrawn))
      grants.moving.withLockIfFree(of: holder.name.user) { view.makeRoom() }
      pending.views[holder.name.user, default: []].append(view)
    }
    return pending
  }
}

/// What was taken out of views of apps, of one user or several, where something may be under way still.
///
/// It is to be ended by one of its methods. No user's part waits for another's.
package struct PendingWithdrawal: Sendable {
  fileprivate var views: [UInt32: [GrantedFiles]] = [:]

  package init() {}

  package mutating func add(_ other: PendingWithdrawal) {
    views.merge(other.views) { $0 + $1 }
  }

  /// Returns when nothing of it can be read or written any more; or after some seconds, with the users of
  /// whom something is under way still.
  ///
  /// Not from a request's own thread.
  package func wait() -> Set<UInt32> {
    if views.count == 1, let (user, views) = views.first { return GrantedFiles.finish(views) ? [] : [user] }
    let waits = begin { _ in }
    _ = waits.wait(milliseconds: Self.patienceMilliseconds) { $0.left.isEmpty }
    return waits.withLock { $0.left.union($0.late) }
  }

  /// Has that done by other threads, and waits for nothing; `late` is told of the same users.
  package func waitElsewhere(_ late: @escaping @Sendable (_ user: UInt32) -> Void) { _ = begin(late) }

  private static let patienceMilliseconds = 5000

  private struct Waits {
    /// The users who are waited for, and those for whom that was in vain.
    var left: Set<UInt32>
    var late: Set<UInt32> = []
  }

  /// Begins to wait for each user on a thread that no other one waits for.
  private func begin(_ late: @escaping @Sendable (_ user: UInt32) -> Void) -> Condition<Waits> {
    let waits = Condition(Waits(left: Set(views.keys)))
    for (user, views) in views {
      let finish = { @Sendable in
        let isDone = GrantedFiles.finish(views)
        if !isDone { late(user) }
        waits.change { waits in
          waits.left.remove(user)
          if !isDone { waits.late.insert(user) }
        }
      }
      if let thread = try? JoinableThread(name: "withdrawal", finish) { thread.detach() } else { finish() }
    }
    return waits
  }
}

/// Places that come into the view of an app, and others that leave it.
package struct ViewChange {
  fileprivate let view: UInt32
  fileprivate let admitted: [ScopePlace]
  fileprivate let withdrawn: [ScopePlace]

  package init(
    ofView view: UInt32, admitting admitted: [ScopePlace], withdrawing withdrawn: [ScopePlace]
  ) {
    self.view = view
    (self.admitted, self.withdrawn) = (admitted, withdrawn)
  }
}
