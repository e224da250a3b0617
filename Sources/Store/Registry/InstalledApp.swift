// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy

/// An app that is installed, as the registry knows it.
package struct InstalledApp: Codable, Equatable, Sendable {
  package let identifier: AppIdentifier
  /// Whose app it is; nil for one that is there for all users of the machine.
  package let user: UInt32?
  /// `CFBundleName`.
  package var name: String
  package var executable: String
  /// `CFBundleVersion`.
  package var version: String
  /// `CFBundleShortVersionString`.
  package var shortVersion: String
  package var team: String
  /// The digest of the root under which it was signed; nil where an earlier version did not note it.
  package var root: [UInt8]?
  /// Where its bundle is, below the root of the tree.
  package var path: String
  /// The digest of its seal.
  package var seal: [UInt8]
  /// When it was installed, in seconds since 1970.
  package var installed: Int64
  /// The groups whose containers it shares.
  package var groups: [AppIdentifier]
  /// Its containers in iCloud; the first is its own.
  package var clouds: [AppIdentifier]

  package init(
    identifier: AppIdentifier, user: UInt32?, name: String, executable: String, version: String,
    shortVersion: String, team: String, root: [UInt8]? = nil, path: String, seal: [UInt8], installed: Int64,
    groups: [AppIdentifier] = [], clouds: [AppIdentifier] = []
  ) {
    self.identifier = identifier
    self.user = user
    self.name = name
    self.executable = executable
    self.version = version
    self.shortVersion = shortVersion
    self.team = team
    self.root = root
    self.path = path
    self.seal = seal
    self.installed = installed
    self.groups = groups
    self.clouds = clouds
  }

  /// Where the apps of a network are that the machine has joined.
  static let networkPrefix = "Network/Applications/"

  /// Whether it is one of those.
  var isOfNetwork: Bool { path.utf8.starts(with: Self.networkPrefix.utf8) }

  /// Whose it is.
  package var signer: Team { Team(team, root: root) }

  /// The name of its bundle: the last one of its path.
  package var bundleName: String { path.splitAtName.name }
}

/// Who has kept a container when its app was removed.
package enum Keeper: Int64, Codable, Sendable {
  /// The container's user, whose own copy of the app it was.
  case owner = 1
  /// An administrator: the app was the machine's.
  case machine = 2
}

/// A container, as the registry knows it.
package struct ContainerRecord: Codable, Equatable, Sendable {
  /// In capital letters.
  package let uuid: String
  package let kind: ContainerKind
  /// The app's, the group's, or iCloud's.
  package let identifier: AppIdentifier
  /// Whose it is.
  package let user: UInt32
  /// Where it is, below the root of the tree.
  package let path: String
  /// Whether its app is gone and it is about to be removed.
  package let isMarkedForRemoval: Bool
  /// Which directory it is; nil as long as that was not noted.
  package var identity: ObjectIdentity?
  /// Whose apps' it is; nil as long as that was not noted.
  package var team: Team?
  /// Who keeps it for a later installation; nil once an app uses it again.
  package var keeper: Keeper?

  package init(
    uuid: String, kind: ContainerKind, identifier: AppIdentifier, user: UInt32, path: String,
    isMarkedForRemoval: Bool = false, identity: ObjectIdentity? = nil, team: Team? = nil,
    keeper: Keeper? = nil
  ) {
    self.uuid = uuid
    self.kind = kind
    self.identifier = identifier
    self.user = user
    self.path = path
    self.isMarkedForRemoval = isMarkedForRemoval
    self.identity = identity
    self.team = team
    self.keeper = keeper
  }
}

extension ContainerKind {
  /// The containers that an app names: its own, those of its groups, and those in iCloud.
  package static func named(
    by identifier: AppIdentifier, groups: [AppIdentifier], clouds: [AppIdentifier]
  ) -> [(kind: ContainerKind, identifier: AppIdentifier)] {
    [(.data, identifier)] + groups.map { (.group, $0) } + clouds.map { (.cloud, $0) }
  }
}
