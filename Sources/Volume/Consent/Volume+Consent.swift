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
    let withdrawn = changes.compactMap { change -> (view: GrantedFiles, places: Set<ScopePlace>)? in
      guard let holder = grants.holder(ofView: change.view) else { return nil }
      return grants.moving.withLock(of: holder.name.user) {
        guard let view = grants.view(change.view) else { return nil }
        for place in change.admitted { view.granted.admit(place) }
        return (view: view.granted, places: Set(change.withdrawn))
      }
    }
    GrantedFiles.withdraw(withdrawn)
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
