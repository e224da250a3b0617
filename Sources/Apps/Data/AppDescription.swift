// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Policy
package import Store

/// An app as commands show it: what the registry knows, and what it has in a user's home.
package struct AppDescription: Codable, Equatable, Sendable {
  package let identifier: String
  package let name: String
  /// `CFBundleShortVersionString`, or the build where there is none.
  package let version: String
  /// `CFBundleVersion`.
  package let build: String
  package let team: String
  /// The digest of the root under which it was signed; nil where a daemon or an installation of an earlier
  /// version does not say.
  package let root: String?
  /// The digests of the roots that an administrator has replaced by that one for its team; nil for none.
  package var formerRoots: [String]?
  package let executable: String
  /// Where its bundle is, below the root of the tree.
  package var path: String
  /// The home that it is in; nil for one of the machine's.
  package let home: String?
  /// When it was installed, in seconds since 1970.
  package let installed: Int64
  package let groups: [String]
  package let clouds: [String]
  /// The digest of its signature.
  package let seal: String
  /// The version that takes its place when it runs no more; nil where none waits.
  package var update: Update?
  /// What it has in the home of the user who asks; nil where nobody in particular asks.
  package var containers: [Container]?

  /// A version of it that waits.
  package struct Update: Codable, Equatable, Sendable {
    package let version: String
    package let build: String
    /// Since when, in seconds since 1970.
    package let since: Int64

    init(_ waiting: WaitingUpdate) {
      let app = waiting.app
      version = app.shortVersion.isEmpty ? app.version : app.shortVersion
      build = app.version
      since = waiting.since
    }
  }

  /// A container of it.
  package struct Container: Codable, Equatable, Sendable {
    package let kind: String
    package let identifier: String
    package let uuid: String
    /// Below the root of the tree.
    package var path: String
    /// Whose apps' it is; nil where that is not known.
    package var team: String?
    package var root: String?
  }

  package init(_ app: InstalledApp) {
    identifier = app.identifier.text
    name = app.name
    version = app.shortVersion.isEmpty ? app.version : app.shortVersion
    build = app.version
    team = app.team
    root = app.root?.asHexadecimal
    executable = app.executable
    path = app.path
    home = app.user == nil ? nil : Homes.name(in: app.path)
    installed = app.installed
    groups = app.groups.map(\.text)
    clouds = app.clouds.map(\.text)
    seal = app.seal.asHexadecimal
  }

  static func containers(_ records: [ContainerRecord]) -> [Container] {
    records.map {
      Container(
        kind: $0.kind.rawValue, identifier: $0.identifier.text, uuid: $0.uuid, path: $0.path,
        team: $0.team?.text, root: $0.team?.root?.asHexadecimal)
    }
  }

  /// The same with paths below `root`.
  package func below(_ root: String) -> AppDescription {
    var copy = self
    copy.path = "\(root)/\(path)"
    copy.containers = containers?.map { container in
      var container = container
      container.path = "\(root)/\(container.path)"
      return container
    }
    return copy
  }
}
