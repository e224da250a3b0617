// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

// Which root speaks for a team, for the whole machine: that of the first app that is installed for everyone,
// or the one that an administrator names; another root's identity of the same team is a stranger's. Users'
// own apps decide that for their user alone, as long as something of them is there.

extension Registry {
  /// The root that speaks for a team; nil if none does yet.
  package func root(of team: String) throws(StoreError) -> [UInt8]? {
    try use { (database) throws(StoreError) in try Self.root(of: team, in: database) }
  }

  private static func root(of team: String, in database: borrowing Database) throws(StoreError) -> [UInt8]? {
    try database.rows("SELECT root FROM teams WHERE team = ?", .text(team)) { (row) throws(StoreError) in
      try row.bytes(0)
    }.first
  }

  /// Throws unless a team's root is the one that speaks for it; if an app is for everyone, the first one does
  /// from now on.
  static func recordRoot(
    of team: Team, for user: UInt32?, in database: borrowing Database
  ) throws(StoreError) {
    try check(team, for: user, in: database)
    // What one user installs must not decide what others and the administrator can install.
    guard let root = team.root, user == nil else { return }
    try database.run(
      "INSERT OR IGNORE INTO teams (team, root) VALUES (?, ?)", .text(team.text), .bytes(root))
  }

  /// Throws if another root speaks for that team: for all, or for the user whose app it is to be.
  package func check(_ team: Team, for user: UInt32?) throws(StoreError) {
    try use { (database) throws(StoreError) in try Self.check(team, for: user, in: database) }
  }

  private static func check(
    _ team: Team, for user: UInt32?, in database: borrowing Database
  ) throws(StoreError) {
    guard let root = team.root else { return }
    let known: [UInt8]?
    if let pinned = try Self.root(of: team.text, in: database) {
      known = pinned
    } else if let user {
      known = try otherRoot(than: root, of: team.text, for: user, in: database)
    } else {
      known = nil
    }
    guard let known, known != root else { return }
    throw .teamOfOtherRoot(team: team.text, known: Team.digits(of: known), new: Team.digits(of: root))
  }

  /// The other root under which a user has something of a team.
  private static func otherRoot(
    than root: [UInt8], of team: String, for user: UInt32, in database: borrowing Database
  ) throws(StoreError) -> [UInt8]? {
    try database.rows(
      """
      SELECT root FROM apps WHERE team = ?1 AND root <> ?2 AND user = ?3
      UNION SELECT root FROM containers WHERE team = ?1 AND root <> ?2 AND user = ?3
      LIMIT 1
      """, .text(team), .bytes(root), .integer(Int64(user))
    ) { (row) throws(StoreError) in try row.bytes(0) }.first
  }

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

  /// Says which root speaks for a team from now on; the data that the team has here are under that root then,
  /// and what its apps were allowed.
  ///
  /// Apps stay under the root that has signed them: one that somebody else has signed in the team's name gets
  /// nothing of what is the team's, and the team's own come under the new root by an update.
  ///
  /// Returns the root that did before.
  @discardableResult
  package func pin(_ team: String, to root: [UInt8]) throws(StoreError) -> [UInt8]? {
    try change { (database) throws(StoreError) in
      let before = try Self.root(of: team, in: database)
      let values: [Database.Value] = [.bytes(root), .text(team)]
      try database.run(
        """
        INSERT OR IGNORE INTO former_roots (root, team)
        SELECT root, team FROM teams WHERE team = ?2 AND root <> ?1
        UNION SELECT root, team FROM apps WHERE team = ?2 AND root <> ?1
        UNION SELECT root, team FROM containers WHERE team = ?2 AND root <> ?1
        UNION SELECT root, team FROM removed WHERE team = ?2 AND root <> ?1
        """, values[0], values[1])
      try database.run("INSERT OR REPLACE INTO teams (root, team) VALUES (?, ?)", values[0], values[1])
      try database.run("UPDATE grants SET root = ? WHERE team = ?", values[0], values[1])
      try database.run("UPDATE containers SET root = ? WHERE team = ?", values[0], values[1])
      try database.run("UPDATE removed SET root = ? WHERE team = ?", values[0], values[1])
      // A refusal that was forgotten would be asked about again.
      try database.run("UPDATE consents SET root = ? WHERE team = ?", values[0], values[1])
      try database.run("UPDATE openers SET root = ? WHERE team = ?", values[0], values[1])
      return before
    }
  }

  /// Notes under which root an app was signed that was installed by an earlier version, for all that it has.
  package func note(root: [UInt8], of app: InstalledApp) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "UPDATE apps SET root = ? WHERE identifier = ? AND user IS ?", .bytes(root),
        .text(app.identifier.text), .optional(app.user))
      if app.user == nil {
        try database.run(
          "INSERT OR IGNORE INTO teams (team, root) VALUES (?, ?)", .text(app.team), .bytes(root))
      }
      try database.run(
        """
        UPDATE grants SET root = ?1 WHERE root IS NULL AND identifier = ?2 COLLATE NOCASE AND team = ?3
          AND (user = ?4 OR ?4 IS NULL
            AND NOT EXISTS (SELECT 1 FROM apps WHERE apps.identifier = ?2 AND apps.user = grants.user))
        """, .bytes(root), .text(app.identifier.text), .text(app.team), .optional(app.user))
      let places: [(ContainerKind, [AppIdentifier])] = [
        (.data, [app.identifier]), (.group, app.groups), (.cloud, app.clouds),
      ]
      for (kind, identifiers) in places {
        for identifier in identifiers {
          try database.run(
            """
            UPDATE containers SET team = ?1, root = ?2 WHERE team IS NULL AND kind = ?3 AND identifier = ?4
              AND (user = ?5 OR ?5 IS NULL
                AND NOT EXISTS (SELECT 1 FROM apps WHERE \
            apps.identifier = ?6 AND apps.user = containers.user))
            """, .text(app.team), .bytes(root), .text(kind.rawValue), .text(identifier.text),
            .optional(app.user), .text(app.identifier.text))
        }
      }
    }
  }

  /// Notes whose a container is.
  func note(_ team: Team, of container: ContainerRecord) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "UPDATE containers SET team = ?, root = ? WHERE uuid = ?", .text(team.text), .optional(team.root),
        .text(container.uuid))
    }
  }
}

extension Database.Value {
  /// A digest, or none.
  static func optional(_ digest: [UInt8]?) -> Database.Value { digest.map { .bytes($0) } ?? .null }
}

extension Columns {
  /// A digest, or nil where there is none.
  func digest(_ index: Int32) throws(StoreError) -> [UInt8]? { isNull(index) ? nil : try bytes(index) }
}
