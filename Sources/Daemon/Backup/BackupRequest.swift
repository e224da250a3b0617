// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy

/// Whose data a backup is to be of.
package struct BackupRequest: Codable, Equatable, Sendable {
  /// Of these apps alone; of all that there is where none is named.
  package var apps: [AppIdentifier]
  /// Whose, if that is asked for; root's is everybody's without it.
  package var user: UInt32?
  /// Whether targets of links are to be shown as UTF-8 (``Policy/LinkText``); nil for no.
  package var encodesLinks: Bool?

  package init(apps: [AppIdentifier] = [], user: UInt32? = nil, encodesLinks: Bool? = nil) {
    self.apps = apps
    self.user = user
    self.encodesLinks = encodesLinks
  }
}

/// What who makes a backup must know; the view's mount comes along, unless they have mounted it themselves.
package struct BackupPlan: Codable, Equatable, Sendable {
  /// Where the whole tree is mounted, and the view is to be.
  package let mountPoint: String
}
