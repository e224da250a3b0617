// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy

// Which containers go when an app goes. The rule, which every statement here states in full:
//
// - of those people only who lose the app: of its user, or of all users if it was the machine's;
// - only those of the app's team, under whichever of the roots that it has or had;
// - only those that no other app of that team uses for the same user. An app whose root is not known yet
//   counts as one of the team's, so that nothing is taken from it;
// - never one that somebody has kept: only its user removes that or, if it was kept for the machine, an
//   administrator, by an uninstall of an identifier of which they have no app any more.
//
// A container in iCloud goes by its user's order alone, which names it.
//
// Identifiers that differ in case only are one: an earlier version of an app may have spelled its own, or its
// group's, otherwise.

extension Registry {
  /// Marks what an app leaves: for removal, or as kept.
  static func release(
    _ kind: ContainerKind, _ identifiers: [AppIdentifier], by app: InstalledApp, keepingData: Bool,
    in database: borrowing Database
  ) throws(StoreError) {
    let keeper: Keeper = app.user == nil ? .machine : .owner
    for identifier in identifiers {
      try database.run(
        releaseStatement, .integer(keepingData ? 0 : 1), .integer(keepingData ? keeper.rawValue : 0),
        .text(kind.rawValue), .text(identifier.text), .optional(app.user), .text(app.team),
        .optional(app.root))
    }
  }

  static var releaseStatement: [StaticString] {
    [
      """
      UPDATE containers SET doomed = ?1, kept = ?2
      WHERE kind = ?3 AND identifier = ?4 COLLATE NOCASE AND doomed = 0 AND kept = 0
        AND (?5 IS NULL OR user = ?5) AND (team IS NULL OR
      """, " ",
    ] + TeamTable.containers.isOfTeam("?6", under: "?7") + [")"] + isUnused
  }

  /// Whether no app of its team uses a container for the same user.
  private static var isUnused: [StaticString] {
    [
      """
       AND NOT EXISTS (
        SELECT 1 FROM apps
        WHERE containers.kind = 'data' AND apps.identifier = containers.identifier AND
      """, " ",
    ] + isForItsUser + [
      """
      ) AND NOT EXISTS (
        SELECT 1 FROM app_groups JOIN apps ON apps.id = app_groups.app
        WHERE containers.kind = 'group' AND app_groups.identifier = containers.identifier COLLATE NOCASE AND
      """, " ",
    ] + isForItsUser + [")"]
  }

  /// Whether an app is there for the user of a container, and is of its team.
  private static var isForItsUser: [StaticString] {
    [
      """
      (apps.user IS NULL OR apps.user = containers.user)
      AND (containers.team IS NULL OR apps.root IS NULL AND apps.team = containers.team OR
      """, " ",
    ] + TeamTable.containers.isOfTeam("apps.team", under: "apps.root") + [")"]
  }

  /// Marks for removal what the apps of a team have left that are not installed any more, or a group without
  /// members, although another team's app may have the same name: for a user all of it; with no user, what
  /// all users have but what others than the caller have kept themselves.
  ///
  /// If there is nothing of that, it is the user's container in iCloud of that name; with no user, the
  /// caller's own, since it is nobody else's to remove.
  ///
  /// Returns how many containers those are.
  package func doomLeft(
    by identifier: AppIdentifier, of user: UInt32?, for caller: UInt32
  ) throws(StoreError) -> Int {
    let owner = user ?? caller
    let others = try homesOfFormerHolder(of: owner)
    return try change { (database) throws(StoreError) in
      // Nobody's number meanwhile: it is the one of whoever had it before.
      for home in others {
        try database.run(Self.exceptStatement, .integer(Int64(owner)), .text("Users/\(home)/"))
      }
      try database.run(
        Self.leftStatement, .text(identifier.text), .optional(user), .integer(Int64(caller)))
      var count = database.changes
      if count == 0 {
        try database.run(Self.leftInCloudStatement, .text(identifier.text), .integer(Int64(owner)))
        count = database.changes
      }
      for home in others {
        try database.run(Self.exceptStatement, .integer(-1 - Int64(owner)), .text("Users/\(home)/"))
      }
      return count
    }
  }

  private static let exceptStatement: StaticString = """
    UPDATE containers SET user = -1 - user WHERE user = ?1 AND substr(path, 1, length(?2)) = ?2
    """

  static var leftStatement: [StaticString] {
    [
      """
      UPDATE containers SET doomed = 1, kept = 0
      WHERE doomed = 0 AND kind IN ('data', 'group') AND identifier = ?1 COLLATE NOCASE
        AND (user = ?2 OR ?2 IS NULL AND (kept <> 1 OR user = ?3))
      """
    ] + isUnused
  }

  static var leftInCloudStatement: [StaticString] {
    [
      """
      UPDATE containers SET doomed = 1, kept = 0
      WHERE doomed = 0 AND kind = 'cloud' AND identifier = ?1 COLLATE NOCASE AND user = ?2
        AND NOT EXISTS (
          SELECT 1 FROM app_clouds JOIN apps ON apps.id = app_clouds.app
          WHERE app_clouds.identifier = containers.identifier COLLATE NOCASE AND
      """, " ",
    ] + isForItsUser + [")"]
  }

  /// Notes that an app uses a container again: nobody keeps it any more.
  func noteUse(of container: ContainerRecord) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run("UPDATE containers SET kept = 0 WHERE uuid = ?", .text(container.uuid))
      try Self.requireChange(of: container, in: database)
    }
  }
}
