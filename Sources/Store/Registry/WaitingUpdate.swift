// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A version of an app that has been verified and copied, and takes the place of the installed one when that
/// runs no more.
package struct WaitingUpdate: Codable, Equatable, Sendable {
  /// The user who requested it, with whose rights of that time it is put in place.
  package struct Requester: Codable, Equatable, Sendable {
    package let uid: UInt32
    package let gid: UInt32
    package let groups: [UInt32]
    package let mayHaveLeftGroups: Bool

    package init(uid: UInt32, gid: UInt32, groups: [UInt32], mayHaveLeftGroups: Bool) {
      self.uid = uid
      self.gid = gid
      self.groups = groups
      self.mayHaveLeftGroups = mayHaveLeftGroups
    }
  }

  /// The name of its copy among those that wait, which nothing else ever had.
  package let name: String
  /// The app as it will be.
  package let app: InstalledApp
  /// The app as it was when this was asked for.
  package let before: InstalledApp
  package let requester: Requester
  package let allowsDowngrade: Bool
  /// Since when it waits, in seconds since 1970.
  package let since: Int64

  package init(
    name: String, app: InstalledApp, before: InstalledApp, requester: Requester, allowsDowngrade: Bool,
    since: Int64
  ) {
    self.name = name
    self.app = app
    self.before = before
    self.requester = requester
    self.allowsDowngrade = allowsDowngrade
    self.since = since
  }

  /// Whether it is for that app, in any of its versions.
  package func isAbout(_ other: InstalledApp) -> Bool {
    app.user == other.user && app.identifier.isSame(as: other.identifier)
  }
}
