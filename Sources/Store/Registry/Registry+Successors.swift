// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

// An administrator has named another root for a team: its apps under the new one may have what was noted for
// the team under its former roots, and never the other way round. What is noted after that, for apps that are
// still under a former root, follows when such an app is updated.

extension Registry {
  /// Whether a team may have what was noted for another one: the same text under a root that an administrator
  /// has replaced by this one's, see ``pin(_:to:)``.
  package func isSuccessor(_ team: Team, of noted: Team) throws(StoreError) -> Bool {
    guard noted.text.hasSameBytes(as: team.text), let root = team.root, let former = noted.root,
      former != root
    else {
      return false
    }
    return try use { (database) throws(StoreError) in
      let rows = try database.rows(
        """
        SELECT 1 FROM teams JOIN former_roots ON former_roots.team = teams.team
        WHERE teams.team = ?1 AND teams.root = ?2 AND former_roots.root = ?3
        """, .text(team.text), .bytes(root), .bytes(former)
      ) { (row) throws(StoreError) in try row.integer(0) }
      return !rows.isEmpty
    }
  }

  /// The roots that an administrator has replaced, by the team that speaks now.
  package func formerRoots() throws(StoreError) -> [Team: [[UInt8]]] {
    let rows = try use { (database) throws(StoreError) in
      try database.rows(
        """
        SELECT teams.team, teams.root, former_roots.root
        FROM teams JOIN former_roots ON former_roots.team = teams.team
        WHERE former_roots.root <> teams.root ORDER BY former_roots.root
        """
      ) { (row) throws(StoreError) in
        (team: Team(try row.text(0), root: try row.bytes(1)), former: try row.bytes(2))
      }
    }
    return Dictionary(grouping: rows) { $0.team }.mapValues { $0.map { $0.former } }
  }

  /// Whether two teams are one, of which an administrator has replaced the root.
  package func areOneTeam(_ one: Team, _ other: Team) throws(StoreError) -> Bool {
    if one == other { return true }
    if try isSuccessor(one, of: other) { return true }
    return try isSuccessor(other, of: one)
  }

  /// An app is installed: what was noted for it, for its groups and in iCloud, under a former root of its
  /// team, is under its own root from now on.
  ///
  /// For everyone's app, what belongs to users with a copy of their own stays that copy's.
  /// `formerGroups` are those that it has left.
  static func takeOver(
    by app: InstalledApp, formerGroups: [AppIdentifier] = [], in database: borrowing Database
  ) throws(StoreError) {
    guard let root = app.root else { return }
    let formers = try database.rows(
      """
      SELECT former_roots.root FROM teams JOIN former_roots ON former_roots.team = teams.team
      WHERE teams.team = ?1 AND teams.root = ?2 AND former_roots.root <> ?2
      """, .text(app.team), .bytes(root)
    ) { (row) throws(StoreError) in try row.bytes(0) }
    let groups = app.groups + formerGroups
    for former in formers { try takeOver(from: former, to: root, of: app, groups, in: database) }
  }

  private static func takeOver(
    from former: [UInt8], to root: [UInt8], of app: InstalledApp, _ groups: [AppIdentifier],
    in database: borrowing Database
  ) throws(StoreError) {
    let values: [Database.Value] = [
      .bytes(root), .text(app.team), .bytes(former), .text(app.identifier.text), .optional(app.user),
    ]
    for table in TeamTable.allCases {
      let start: [StaticString] = [
        "UPDATE ", table.name, " SET root = ?1 WHERE team = ?2 AND root = ?3",
        " AND (user = ?5 OR ?5 IS NULL AND NOT EXISTS (",
        "SELECT 1 FROM apps WHERE apps.identifier = ?4 AND apps.user = ", table.name, ".user))",
      ]
      guard table.isOfContainers else {
        try database.run(
          start + [" AND identifier = ?4 COLLATE NOCASE"], values[0], values[1], values[2], values[3],
          values[4])
        continue
      }
      for (kind, container) in ContainerKind.named(by: app.identifier, groups: groups, clouds: app.clouds) {
        try database.run(
          start + [" AND kind = ?6 AND identifier = ?7 COLLATE NOCASE"], values[0], values[1], values[2],
          values[3], values[4], .text(kind.rawValue), .text(container.text))
      }
    }
  }
}
