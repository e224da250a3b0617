// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy
package import Store

/// Queries about the apps of a store: which there are, what they have, and where it is.
///
/// The answers are the same from the daemon and from a command on a store that no daemon serves.
package struct AppQueries {
  private let store: Store
  private let registry: Registry?

  package init(_ store: Store) throws(StoreError) {
    self.init(store, try Registry.existing(of: store))
  }

  /// A store without a registry has no apps.
  package init(_ store: Store, _ registry: Registry?) {
    self.store = store
    self.registry = registry
  }

  /// The apps that a user has, their own and the machine's; without a user, all that there are.
  package func apps(for user: UInt32?) throws(StoreError) -> [AppDescription] {
    let apps = try registry?.apps(for: user) ?? []
    // The own one comes before the machine's of the same identifier, which its owner does not get to see.
    var own: Set<AppIdentifier> = []
    for app in apps where user != nil && app.user != nil {
      // Nothing is looked at for one that hides none.
      let others = apps.filter { $0.user == nil && $0.identifier == app.identifier }
      if others.isEmpty { continue }
      if let registry, try registry.isLost(app) { continue }
      own.insert(app.identifier)
    }
    let updates = try registry?.waitingUpdates() ?? []
    let former = try registry?.formerRoots() ?? [:]
    return apps.filter { user == nil || $0.user != nil || !own.contains($0.identifier) }.map { app in
      var description = AppDescription(app)
      description.update = updates.first { $0.isAbout(app) }.map(AppDescription.Update.init)
      description.formerRoots = former[app.signer]?.map(\.asHexadecimal)
      return description
    }
  }

  /// One app, with what it has in the user's home.
  package func app(_ identifier: AppIdentifier, for user: UInt32?) throws(StoreError) -> AppDescription {
    let app = try installed(identifier, for: user)
    var description = AppDescription(app)
    description.update = try registry?.waitingUpdate(of: app.identifier, for: app.user).map(
      AppDescription.Update.init)
    description.formerRoots = try registry?.formerRoots()[app.signer]?.map(\.asHexadecimal)
    guard let user, let registry else { return description }
    description.containers = AppDescription.containers(try containers(of: app, for: user, registry))
    return description
  }

  /// The containers in a user's home that have an app's names; each can be another team's.
  private func containers(
    of app: InstalledApp, for user: UInt32, _ registry: Registry
  ) throws(StoreError) -> [ContainerRecord] {
    lazy var home = try? store.home(of: user)
    var found: [ContainerRecord] = []
    for (kind, identifier) in ContainerKind.named(
      by: app.identifier, groups: app.groups, clouds: app.clouds)
    {
      let records = try registry.containers(kind: kind, identifier: identifier, user: user)
      for record in records where !record.isMarkedForRemoval {
        found.append(try store.withNotedTeam(record, registry))
      }
      if records.isEmpty, let home,
        let container = store.unrecordedContainer(kind, identifier, of: user, home: home)
      {
        found.append(container)
      }
    }
    return found
  }

  /// Where a place of an app is in a user's home, below the root of the tree.
  ///
  /// If it is in a container that is not there, `making` gives what makes it.
  package func path(
    of place: AppPlace, _ identifier: AppIdentifier, for user: UInt32,
    making: () throws(StoreError) -> Containers
  ) throws(StoreError) -> String {
    let app = try installed(identifier, for: user)
    switch place {
    case .bundle: return app.path
    case .group(let group):
      guard app.groups.contains(group) else {
        throw .notEntitled(to: group, app)
      }
      return try container(.group, group, app, for: user, making)
    case .cloud(let asked):
      guard let cloud = asked ?? app.clouds.first, app.clouds.contains(cloud) else {
        throw .notEntitled(toCloud: asked, app)
      }
      return try container(.cloud, cloud, app, for: user, making)
    default:
      let container = try container(.data, app.identifier, app, for: user, making)
      return place.pathInContainer.map { "\(container)/\($0)" } ?? container
    }
  }

  /// The path of a user's home, below the root of the tree.
  package func home(of user: UInt32) throws(StoreError) -> String { "Users/\(try store.home(of: user))" }

  private func installed(
    _ identifier: AppIdentifier, for user: UInt32?
  ) throws(StoreError) -> InstalledApp {
    if let app = try registry?.app(identifier, for: user) { return app }
    // Who asks for no user in particular means whoever's it is, if it is but one's.
    if user == nil {
      let found = try registry?.apps().filter { $0.identifier == identifier } ?? []
      if let only = found.first, found.count == 1 { return only }
    }
    throw .noApp(identifier: identifier.text)
  }

  private func container(
    _ kind: ContainerKind, _ identifier: AppIdentifier, _ app: InstalledApp, for user: UInt32,
    _ making: () throws(StoreError) -> Containers
  ) throws(StoreError) -> String {
    guard let registry else { throw .noApp(identifier: identifier.text) }
    let home = try store.home(of: user)
    if let found = try store.wholeContainer(kind, identifier, of: user, home: home, for: app, registry) {
      return found.path
    }
    let containers = try making()
    return try Installer.alone(for: user, in: "Users/\(home)/", store, registry) { () throws(StoreError) in
      try containers.make(kind, identifier, for: app, home: home, ifInstalled: true).path
    }
  }
}

extension StoreError {
  static func notEntitled(to group: AppIdentifier, _ app: InstalledApp) -> StoreError {
    .notEntitled(
      identifier: app.identifier.text, to: "the group \(group)", has: app.groups.map { "group:\($0)" })
  }

  /// Nil stands for the first of its iCloud containers.
  static func notEntitled(toCloud asked: AppIdentifier?, _ app: InstalledApp) -> StoreError {
    .notEntitled(
      identifier: app.identifier.text, to: asked.map { "the iCloud container \($0)" } ?? "iCloud",
      has: app.clouds.map { "icloud:\($0)" })
  }
}
