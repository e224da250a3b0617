// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import PropertyLists
internal import Store

// Whose the data in containers are. Any app can have any identifier, and the right to a group of any name. So
// the team that had the container in the backup decides, and neither the app that had its name there nor the
// right of an app that is installed where the backup is restored.

extension BackupManifest {
  /// The containers in a home that have the names of apps' own, of their groups, or of theirs in iCloud.
  static func containers(
    _ access: any StoreAccess, in home: Home, where isChosen: (String) -> Bool
  ) throws -> [Container] {
    var found: [Container] = []
    var seen: Set<Container> = []
    for app in try access.apps(for: home.user) where isChosen(app.identifier) {
      guard let identifier = AppIdentifier(app.identifier),
        let known = try? access.app(identifier, for: home.user)
      else { continue }
      for container in known.containers ?? [] {
        // Its user may have a second home.
        guard let kind = ContainerKind(rawValue: container.kind), let team = container.team,
          container.path.utf8.starts(with: "Users/\(home.name)/".utf8)
        else { continue }
        let noted = Container(
          home: home.name, kind: kind, identifier: container.identifier, team: team, root: container.root,
          uuid: container.uuid)
        if seen.insert(noted).inserted { found.append(noted) }
      }
    }
    return found
  }

  /// Throws unless an app that is here is of the team whose apps' a container was.
  ///
  /// If the backup does not say whose an app's own container was, a person says it by naming the app.
  func require(
    _ kind: ContainerKind, _ identifier: AppIdentifier, ofHome name: String, isFor app: AppDescription,
    isNamed: Bool = false
  ) throws {
    guard let team = team(of: kind, identifier, inHome: name) else {
      if kind == .data, isNamed { return }
      let advice =
        kind == .data
        ? "; if it belongs to the one that is installed, signed by the team \(app.team.sanitized), name the "
          + "app: 'insula backup restore \(identifier)'" : ""
      throw CommandFailure(
        .failed, "the backup does not say to which team's apps it belongs, so it was left out" + advice)
    }
    guard team.includes(app) else {
      throw CommandFailure(
        .failed,
        "in the backup it belongs to apps of the team \(team.text.sanitized), but "
          + "\(app.identifier.sanitized) is signed by another team, \(app.team.sanitized)")
    }
  }

  /// Throws if what the backup has of a container is not of the one whose team it names: this was noted
  /// before the backup was made, and by then its name was another one's.
  func require(
    _ kind: ContainerKind, _ identifier: AppIdentifier, ofHome name: String, isWhatWasReadFrom directory: FD
  ) throws {
    guard let noted = noted(kind, identifier, inHome: name)?.uuid,
      let read = ContainerLayout.uuid(notedIn: directory), !read.hasSameBytes(as: noted)
    else { return }
    throw CommandFailure(
      .failed,
      "while the backup was made, another app's container took the place of the one that it names, so it was "
        + "left out; take another backup, or copy files that are yours from \(BackupManifest.treeName) of it")
  }

  /// Says which containers have become others' while the backup was made.
  func othersNow(_ access: any StoreAccess) throws -> [Container] {
    try (homes ?? []).flatMap { home in
      let now = try Self.containers(access, in: home) { _ in true }
      return (containers ?? []).filter { noted in
        noted.home.hasSameBytes(as: home.name)
          && now.contains {
            $0.home == noted.home && $0.kind == noted.kind && $0.identifier == noted.identifier
              && $0.uuid != noted.uuid
          }
      }
    }
  }

  private func noted(_ kind: ContainerKind, _ identifier: AppIdentifier, inHome name: String) -> Container? {
    containers?.first {
      $0.kind == kind && $0.identifier.utf8.elementsEqual(identifier.text.utf8)
        && $0.home.hasSameBytes(as: name)
    }
  }

  private func team(of kind: ContainerKind, _ identifier: AppIdentifier, inHome name: String) -> BackupTeam? {
    if containers == nil { return earlierTeam(of: kind, identifier, inHome: name) }
    if kind == .data, !namesTeamsOfApps { return earlierTeam(of: kind, identifier, inHome: name) }
    return noted(kind, identifier, inHome: name).map { BackupTeam($0.team, root: $0.root) }
  }

  /// In a backup of an earlier version the team that had a right to the container; nil if there were two.
  ///
  /// An app's own container was the team's if the app was its user's own: such an app is not installed where
  /// another team's data are. Everyone's app may have had nothing of what has its name in a home.
  private func earlierTeam(
    of kind: ContainerKind, _ identifier: AppIdentifier, inHome name: String
  ) -> BackupTeam? {
    let entitled = apps(forHome: name).filter { app in
      kind == .data
        ? app.home != nil && AppIdentifier(app.identifier)?.isSame(as: identifier) == true
        : app.isEntitled(to: kind, identifier)
    }
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
