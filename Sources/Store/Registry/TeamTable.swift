// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The tables whose rows are a team's, under a root: they have the columns `team`, `root`, `user` and
/// `identifier`.
///
/// A table that gets such columns has its place here; `apps` has not, since an app is under the root that has
/// signed it.
enum TeamTable: CaseIterable {
  case grants
  // A refusal that was forgotten would be asked about again.
  case consents
  case openers
  case containers
  case removed

  var name: StaticString {
    switch self {
    case .grants: "grants"
    case .consents: "consents"
    case .openers: "openers"
    case .containers: "containers"
    case .removed: "removed"
    }
  }

  /// Whether its rows are containers, which have a kind too, and of which apps share some.
  var isOfContainers: Bool { self == .containers || self == .removed }

  /// A condition on a row: whether it is noted for the team of a text and a root, or for the same team under
  /// another root that it has or had.
  ///
  /// An app that is still under a former root gets what is the team's by its next update, and one that is
  /// under the new root gets what was noted for the former one.
  func isOfTeam(_ team: StaticString, under root: StaticString) -> [StaticString] {
    [
      "(", name, ".team = ", team, " AND (", name, ".root IS ", root,
      " OR EXISTS (SELECT 1 FROM teams WHERE teams.team = ", team,
      " AND (teams.root = ", root, " OR ", Self.isFormer, root, "))",
      " AND (teams.root = ", name, ".root OR ", Self.isFormer, name, ".root)))))",
    ]
  }

  private static let isFormer: StaticString =
    "EXISTS (SELECT 1 FROM former_roots WHERE former_roots.team = teams.team AND former_roots.root = "
}
