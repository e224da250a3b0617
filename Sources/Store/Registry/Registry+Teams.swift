// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

// Which root speaks for a team, for the whole machine: that of the first app that is installed for everyone,
// or the one that an administrator names; another root's identity of the same team is a stranger's. Users'
// own apps decide that for their user alone, as long as something of them is there. The apps of a network
// decide it for the network alone: its roots count for nothing else.

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

  /// Throws unless a team's root is the one that speaks for it.
  static func checkRoot(of app: InstalledApp, in database: borrowing Database) throws(StoreError) {
    try check(app.signer, for: app.user, in: database)
    if app.isOfNetwork { try checkInNetwork(app.signer, in: database) }
  }

  /// Throws if an app of that team under another root is just being installed for everyone: only one of them
  /// can be the first.
  static func checkRoot(of app: InstalledApp, among intents: [TreeIntent]) throws(StoreError) {
    guard let root = app.root, app.user == nil else { return }
    let other = intents.first { intent in
      guard intent.work != .uninstall, intent.app.user == nil, let other = intent.app.root else {
        return false
      }
      return intent.app.team.hasSameBytes(as: app.team) && other != root
        && intent.app.isOfNetwork == app.isOfNetwork
    }
    if let other { throw .appBusy(identifier: other.app.identifier.text) }
  }

  /// An app is installed: if it is for everyone, the first one's root speaks for its team from now on.
  static func recordRoot(of app: InstalledApp, in database: borrowing Database) throws(StoreError) {
    let team = app.signer
    // What one user installs must not decide what others and the administrator can install.
    guard let root = team.root, app.user == nil, !app.isOfNetwork else { return }
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

  /// Throws if the network has an app of that team under another root.
  private static func checkInNetwork(_ team: Team, in database: borrowing Database) throws(StoreError) {
    guard let root = team.root else { return }
    let others = try database.rows(
      """
      SELECT root FROM apps WHERE team = ?1 AND root <> ?2 AND user IS NULL
        AND substr(path, 1, length(?3)) = ?3
        AND NOT EXISTS (
          SELECT 1 FROM teams JOIN former_roots ON former_roots.team = teams.team
          WHERE teams.team = ?1 AND teams.root = ?2 AND former_roots.root = apps.root)
      """, .text(team.text), .bytes(root), .text(InstalledApp.networkPrefix)
    ) { (row) throws(StoreError) in try row.bytes(0) }
    guard let known = others.first else { return }
    throw .teamOfOtherRoot(team: team.text, known: Team.digits(of: known), new: Team.digits(of: root))
  }

  /// Forgets that teams are assigned to roots of a network, which earlier versions have noted.
  ///
  /// What an app for everyone outside of the network has decided stays.
  package func forgetTeams(ofNetworkRoots roots: [[UInt8]]) throws(StoreError) {
    try change { (database) throws(StoreError) in
      for root in roots {
        try database.run(
          """
          DELETE FROM teams WHERE root = ?1 AND NOT EXISTS (
            SELECT 1 FROM apps WHERE apps.team = teams.team AND apps.root = ?1 AND apps.user IS NULL
              AND substr(apps.path, 1, length(?2)) <> ?2)
          """, .bytes(root), .text(InstalledApp.networkPrefix))
      }
    }
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

  /// Assigns a team to a root.
  ///
  /// What is noted for the team under its former roots is under this one then: its data, and what its apps
  /// were allowed.
  ///
  /// The former roots are those to which the team was assigned before. Under any other root somebody else has
  /// written the team's text: what is noted for their apps stays theirs. Of a team that was assigned to no
  /// root nothing moves, since nobody has said yet which of the roots under which users have something is the
  /// team's.
  ///
  /// Apps stay under the root that has signed them; the team's own come under the new root by an update.
  ///
  /// Returns the root to which the team was assigned before.
  @discardableResult
  package func pin(_ team: String, to root: [UInt8]) throws(StoreError) -> [UInt8]? {
    try change { (database) throws(StoreError) in
      let before = try Self.root(of: team, in: database)
      let values: [Database.Value] = [.bytes(root), .text(team)]
      try database.run(
        """
        INSERT OR IGNORE INTO former_roots (root, team)
        SELECT root, team FROM teams WHERE team = ?2 AND root <> ?1
        """, values[0], values[1])
      try database.run("INSERT OR REPLACE INTO teams (root, team) VALUES (?, ?)", values[0], values[1])
      for table in TeamTable.allCases {
        // Rows of versions that did not know roots have none; an administrator says whose they are.
        try database.run(
          [
            "UPDATE ", table.name,
            """
             SET root = ?1 WHERE team = ?2
              AND (root IS NULL OR root IN (SELECT root FROM former_roots WHERE team = ?2))
            """,
          ], values[0], values[1])
      }
      return before
    }
  }

  /// Notes under which root an app was signed that was installed by an earlier version, for all that it has.
  package func note(root: [UInt8], of app: InstalledApp) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "UPDATE apps SET root = ? WHERE identifier = ? AND user IS ?", .bytes(root),
        .text(app.identifier.text), .optional(app.user))
      if app.user == nil, !app.isOfNetwork {
        try database.run(
          "INSERT OR IGNORE INTO teams (team, root) VALUES (?, ?)", .text(app.team), .bytes(root))
      }
      try database.run(
        """
        UPDATE grants SET root = ?1 WHERE root IS NULL AND identifier = ?2 COLLATE NOCASE AND team = ?3
          AND (user = ?4 OR ?4 IS NULL
            AND NOT EXISTS (SELECT 1 FROM apps WHERE apps.identifier = ?2 AND apps.user = grants.user))
        """, .bytes(root), .text(app.identifier.text), .text(app.team), .optional(app.user))
      for (kind, identifier) in ContainerKind.named(
        by: app.identifier, groups: app.groups, clouds: app.clouds)
      {
        try database.run(
          """
          UPDATE containers SET team = ?1, root = ?2 WHERE team IS NULL AND kind = ?3 AND identifier = ?4
            AND (user = ?5 OR ?5 IS NULL
              AND NOT EXISTS (SELECT 1 FROM apps WHERE apps.identifier = ?6 AND apps.user = containers.user))
          """, .text(app.team), .bytes(root), .text(kind.rawValue), .text(identifier.text),
          .optional(app.user), .text(app.identifier.text))
      }
    }
  }

  /// Notes whose a container is.
  func note(_ team: Team, of container: ContainerRecord) throws(StoreError) {
    let isOther: Bool
    if let known = container.team { isOther = try !areOneTeam(known, team) } else { isOther = false }
    try change { (database) throws(StoreError) in
      try database.run(
        "UPDATE containers SET team = ?, root = ? WHERE uuid = ?", .text(team.text), .optional(team.root),
        .text(container.uuid))
      try Self.requireChange(of: container, in: database)
      // What was granted of it was granted of another team's data.
      if isOther { try Self.dropGrants(below: container.path + "/", in: database) }
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
