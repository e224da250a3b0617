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

  /// Puts some places into all views of an app of a user's and takes others out.
  ///
  /// When this returns, the app finds what was put in, and nothing of what was taken out can be found, read
  /// or written any more. Not from a request's own thread: it waits for requests.
  package func change(
    viewsOf identifier: AppIdentifier, user: UInt32, admitting new: [ScopePlace],
    withdrawing old: [ScopePlace]
  ) {
    let views = grants.moving.withLock { _ in
      let views = grants.views(of: GrantHolder(identifier, user))
      for view in views { for place in new { view.granted.admit(place) } }
      return views
    }
    GrantedFiles.withdraw(Set(old), from: views.map(\.granted))
  }
}
