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
  /// When this returns, the apps find what was put in, and nothing of what was taken out can be found, read
  /// or written any more. Not from a request's own thread: it waits for requests, for all of them together.
  package func change(_ changes: [ViewChange]) {
    let withdrawn = grants.moving.withLock { _ in
      changes.flatMap { change in
        let views = grants.views(of: GrantHolder(change.identifier, change.user))
        for view in views { for place in change.admitted { view.granted.admit(place) } }
        return views.map { (view: $0.granted, places: Set(change.withdrawn)) }
      }
    }
    GrantedFiles.withdraw(withdrawn)
  }
}

/// Places that come into all views of an app of a user's, and others that leave them.
package struct ViewChange {
  fileprivate let identifier: AppIdentifier
  fileprivate let user: UInt32
  fileprivate let admitted: [ScopePlace]
  fileprivate let withdrawn: [ScopePlace]

  package init(
    ofViewsOf identifier: AppIdentifier, user: UInt32, admitting admitted: [ScopePlace],
    withdrawing withdrawn: [ScopePlace]
  ) {
    (self.identifier, self.user) = (identifier, user)
    (self.admitted, self.withdrawn) = (admitted, withdrawn)
  }
}
