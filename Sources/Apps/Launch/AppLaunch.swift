// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy
package import Store

/// All that is to be known of an app that is about to run for a user.
package struct AppLaunch: Sendable {
  package let app: InstalledApp
  /// The name of the user's home.
  package let home: String
  package let entitlements: AppEntitlements
  /// Below the root of the tree.
  package let executable: String
  /// What its bundle says that it needs at most.
  package let limits: ResourceLimits
  /// What of its user's it may ask for.
  package let privacy: AppPrivacy
  /// What its entitlements open of the tree, and what of that takes its user's consent.
  package let sandbox: SandboxReach

  package init(
    _ app: InstalledApp, home: String, _ entitlements: AppEntitlements, executable: String,
    limits: ResourceLimits = ResourceLimits(), privacy: AppPrivacy = AppPrivacy()
  ) {
    self.app = app
    self.home = home
    self.entitlements = entitlements
    self.executable = executable
    self.limits = limits
    self.privacy = privacy
    sandbox = SandboxReach(
      home: home, entitlements.places(home: home), isChooser: privacy.isChooser)
  }

  /// The app's own container, below the root of the tree.
  package var container: String { container(app.identifier, .data) }

  /// What the app has as its home, in that.
  package var data: String { "\(container)/\(ContainerLayout.dataName)" }

  /// Where what it runs may lie, below the root of the tree.
  package var executablePlaces: [String] { [app.path, "Library/Frameworks", "System"] }

  /// Whether that is one of them.
  package func runs(from path: String) -> Bool {
    executablePlaces.contains { $0.hasSameBytes(as: path) }
  }

  /// The part of the tree that there is for it, before the user has granted or allowed anything.
  package var places: [ScopePlace] {
    let own: Reach = entitlements.runsWhatItWrites ? [.read, .write, .execute] : [.read, .write]
    var places = executablePlaces.map { ScopePlace($0, [.read, .execute]) }
    places.append(ScopePlace(container(app.identifier, .data), own))
    places += app.groups.map { ScopePlace(container($0, .group), own) }
    places += app.clouds.map { ScopePlace(container($0, .cloud), own) }
    return places + sandbox.permanent
  }

  /// Where a place of the app is, below the root of the tree; all of them were made before it was started.
  package func path(of place: AppPlace) throws(StoreError) -> String {
    switch place {
    case .bundle: return app.path
    case .group(let group):
      guard app.groups.contains(group) else { throw .notEntitled(to: group, app) }
      return container(group, .group)
    case .cloud(let asked):
      guard let cloud = asked ?? app.clouds.first, app.clouds.contains(cloud) else {
        throw .notEntitled(toCloud: asked, app)
      }
      return container(cloud, .cloud)
    default:
      let own = container(app.identifier, .data)
      return place.pathInContainer.map { "\(own)/\($0)" } ?? own
    }
  }

  private func container(_ identifier: AppIdentifier, _ kind: ContainerKind) -> String {
    "Users/\(home)/\(ContainerLayout.path(of: identifier, kind))"
  }
}
