// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy
package import Store

/// Apps that were signed under former roots of a team, and that have something that is about to become
/// another app's: one of the team's under the root that an administrator has named since.
package struct FormerApps: Equatable, Sendable {
  let apps: [InstalledApp]
  /// Whose data that is; nil for those of all users.
  package let user: UInt32?
  /// Of all users, these keep what they have: they have a copy of the app of their own.
  let spared: Set<UInt32>

  /// Nil if there are none.
  ///
  /// `formers` are all installed apps that were signed under former roots of the new app's team.
  init?(of app: InstalledApp, among formers: [InstalledApp], _ spared: Set<UInt32>) {
    apps = formers.filter { former in
      (app.user == nil || former.user == nil || former.user == app.user) && former.sharesContainers(with: app)
    }
    if apps.isEmpty { return nil }
    user = app.user
    self.spared = app.user == nil ? spared : []
  }

  package var identifiers: [AppIdentifier] { apps.map(\.identifier) }

  /// Whether an app that runs for a user is one of them.
  package func have(_ app: InstalledApp, runningFor user: UInt32) -> Bool {
    if let owner = self.user, owner != user { return false }
    return !spared.contains(user)
      && apps.contains {
        $0.identifier.isSame(as: app.identifier) && $0.user == app.user && $0.signer == app.signer
      }
  }
}

extension InstalledApp {
  /// Whether two apps name a container that both would have.
  fileprivate func sharesContainers(with other: InstalledApp) -> Bool {
    let others = ContainerKind.named(by: other.identifier, groups: other.groups, clouds: other.clouds)
    return ContainerKind.named(by: identifier, groups: groups, clouds: clouds).contains { own in
      others.contains { $0.kind == own.kind && $0.identifier.isSame(as: own.identifier) }
    }
  }
}

extension Installer {
  /// The apps from which the app of a change takes something over.
  func formerApps(_ intent: TreeIntent) throws(StoreError) -> FormerApps? {
    guard intent.work != .uninstall else { return nil }
    var app = intent.app
    let all = try registry.apps()
    var formers: [InstalledApp] = []
    for other in all where try registry.isSuccessor(app.signer, of: other.signer) { formers.append(other) }
    // Also in a group that it leaves: that goes with the last app that may have it.
    app.groups += intent.before?.groups ?? []
    let owners = all.filter { $0.identifier.isSame(as: app.identifier) }.compactMap(\.user)
    return FormerApps(of: app, among: formers, Set(owners))
  }
}
