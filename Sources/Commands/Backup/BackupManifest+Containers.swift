// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Policy
internal import PropertyLists

// Whose the data of groups and in iCloud are. Any app can have the right to a group of any name, so the team
// that had the container in the backup decides, and not the right of an app that is installed where the
// backup is restored.

extension BackupManifest {
  /// The containers of groups and in iCloud that there are in a home.
  static func containers(
    _ access: any StoreAccess, in home: Home, where isChosen: (String) -> Bool
  ) throws -> [Container] {
    var found: [Container] = []
    for app in try access.apps(for: home.user) where isChosen(app.identifier) {
      guard !app.groups.isEmpty || !app.clouds.isEmpty, let identifier = AppIdentifier(app.identifier),
        let known = try? access.app(identifier, for: home.user)
      else { continue }
      for container in known.containers ?? [] {
        guard let kind = ContainerKind(rawValue: container.kind), kind != .data, let team = container.team
        else { continue }
        let noted = Container(
          home: home.name, kind: kind, identifier: container.identifier, team: team, root: container.root)
        if !found.contains(noted) { found.append(noted) }
      }
    }
    return found
  }

  /// Throws unless an app that is here is of the team whose apps' a container was.
  func require(
    _ kind: ContainerKind, _ identifier: AppIdentifier, ofHome name: String, isFor app: AppDescription
  ) throws {
    guard let team = team(of: kind, identifier, inHome: name) else {
      throw CommandFailure(
        .failed, "the backup does not say to which team's apps it belongs, so it was left out")
    }
    guard team.includes(app) else {
      throw CommandFailure(
        .failed,
        "in the backup it belongs to apps of the team \(team.text.sanitized), but "
          + "\(app.identifier.sanitized) is signed by another team, \(app.team.sanitized)")
    }
  }

  private func team(of kind: ContainerKind, _ identifier: AppIdentifier, inHome name: String) -> BackupTeam? {
    guard let containers else { return earlierTeam(of: kind, identifier, inHome: name) }
    let noted = containers.first {
      $0.kind == kind && $0.identifier.utf8.elementsEqual(identifier.text.utf8)
        && $0.home.hasSameBytes(as: name)
    }
    return noted.map { BackupTeam($0.team, root: $0.root) }
  }

  /// In a backup of an earlier version the team that had a right to the container; nil if there were two.
  private func earlierTeam(
    of kind: ContainerKind, _ identifier: AppIdentifier, inHome name: String
  ) -> BackupTeam? {
    let entitled = apps(forHome: name).filter { $0.isEntitled(to: kind, identifier) }
    let teams = Set(entitled.map { BackupTeam($0.team, root: $0.root) })
    return teams.count == 1 ? teams.first : nil
  }
}

extension BackupManifest.App {
  fileprivate func isEntitled(to kind: ContainerKind, _ identifier: AppIdentifier) -> Bool {
    let keys =
      switch kind {
      case .data: [String]()
      case .group: ["com.apple.security.application-groups"]
      case .cloud:
        [
          "com.apple.developer.icloud-container-identifiers",
          "com.apple.developer.ubiquity-container-identifiers",
        ]
      }
    guard let entitlements, let list = (try? PropertyList(reading: Array(entitlements.utf8)))?.dictionary
    else { return false }
    return keys.contains { key in
      list[key]?.array?.contains { $0.string.flatMap(AppIdentifier.init) == identifier } == true
    }
  }
}
