// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy

/// What a user has granted an app.
package struct GrantRecord: Equatable, Sendable {
  package var id: Int64
  package let identifier: AppIdentifier
  /// Who has granted it, and for whom the app runs that has it.
  package let user: UInt32
  /// Whose app it was granted to: another team's of the same identifier is another app.
  package var team: Team
  /// Names below the root of the tree.
  package var path: [[UInt8]]
  package var isWritable: Bool
  package let isDirectory: Bool
  /// What was there when it was last looked at.
  package var identity: ObjectIdentity
  /// When it was granted, in seconds since 1970.
  package let granted: Int64

  package init(
    id: Int64 = 0, identifier: AppIdentifier, user: UInt32, team: Team, path: [[UInt8]], isWritable: Bool,
    isDirectory: Bool, identity: ObjectIdentity, granted: Int64
  ) {
    self.id = id
    self.identifier = identifier
    self.user = user
    self.team = team
    self.path = path
    self.isWritable = isWritable
    self.isDirectory = isDirectory
    self.identity = identity
    self.granted = granted
  }

  /// What of the tree that is.
  package var place: ScopePlace {
    let reach: Reach = isWritable ? [.read, .write, .revocable] : [.read, .revocable]
    return ScopePlace(path, reach, isSubtree: isDirectory, by: .grant)
  }
}
