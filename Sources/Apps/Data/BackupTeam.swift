// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A team as a backup names it.
package struct BackupTeam: Hashable, Sendable {
  package let text: String
  /// The digits of the root's digest; nil where that was not known.
  package let root: String?

  package init(_ text: String, root: String?) {
    self.text = text
    self.root = root
  }

  /// Whether an app of a team may have what the backup has of this one.
  package func includes(_ app: AppDescription) -> Bool {
    text.utf8.elementsEqual(app.team.utf8) && (root == nil || app.root == nil || root == app.root)
  }
}
