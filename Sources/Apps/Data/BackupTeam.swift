// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
package import Store

/// A team as a backup names it, or a command that means its app.
package struct BackupTeam: Codable, Hashable, Sendable {
  package let text: String
  /// The digits of the root's digest; nil where that was not known.
  package let root: String?

  package init(_ text: String, root: String?) {
    self.text = text
    self.root = root
  }

  /// An app's, as it is now.
  package init(of app: AppDescription) { self.init(app.team, root: app.root) }

  package static func == (one: BackupTeam, other: BackupTeam) -> Bool {
    one.text.hasSameBytes(as: other.text) && one.root == other.root
  }

  package func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
    hasher.combine(root)
  }

  /// Whether an app of a team may have what the backup has of this one: also under a root that has taken the
  /// place of the one in the backup.
  package func includes(_ app: AppDescription) -> Bool {
    guard text.hasSameBytes(as: app.team) else { return false }
    guard let root, let known = app.root else { return true }
    return root == known || app.formerRoots?.contains(root) == true
  }

  /// Whether that is this very team; a root that is not known makes no difference.
  package func isSame(as team: Team) -> Bool {
    guard text.hasSameBytes(as: team.text) else { return false }
    guard let root, let known = team.root else { return true }
    return root == known.asHexadecimal
  }
}
