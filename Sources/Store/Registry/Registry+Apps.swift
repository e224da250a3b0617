// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy

// The apps that are installed.

extension Registry {
  /// A user can install so many for themselves.
  package static let appLimitOfUser = 1000

  /// The apps that a user has for themselves can be in so many groups and have so many containers in iCloud,
  /// each counted for each app: as many as a user can have containers.
  package static let belongingLimitOfUser = containerLimitOfUser

  /// Throws if a user who is about to get an app has as many as a user can have.
  static func requireRoom(for app: InstalledApp, in database: borrowing Database) throws(StoreError) {
    guard let user = app.user else { return }
    let count = try database.count("SELECT count(*) FROM apps WHERE user = ?", .integer(Int64(user)))
    guard count < appLimitOfUser else { throw .tooManyApps(user: user, limit: appLimitOfUser) }
  }

  /// Throws if the groups and the containers in iCloud of an app, or of its next version, are too many for
  /// its user.
  static func requireRoomForBelongings(
    of app: InstalledApp, in database: borrowing Database
  ) throws(StoreError) {
    guard let user = app.user else { return }
    let others = try database.count(
      """
      SELECT (SELECT count(*) FROM apps JOIN app_groups ON app_groups.app = apps.id
          WHERE user = ?1 AND apps.identifier <> ?2)
        + (SELECT count(*) FROM apps JOIN app_clouds ON app_clouds.app = apps.id
          WHERE user = ?1 AND apps.identifier <> ?2)
      """, .integer(Int64(user)), .text(app.identifier.text))
    guard others + Int64(app.groups.count + app.clouds.count) <= Int64(belongingLimitOfUser) else {
      throw .tooManyGroups(user: user, limit: belongingLimitOfUser)
    }
  }

  /// All apps, by identifier; with a user, only those that are there for that one.
  package func apps(for user: UInt32? = nil) throws(StoreError) -> [InstalledApp] {
    try apps(all: user == nil, orOf: user)
  }

  /// The machine's apps and, with a user, those that this user has for themselves.
  package func apps(seenBy user: UInt32?) throws(StoreError) -> [InstalledApp] {
    try apps(all: false, orOf: user)
  }

  /// All, or the machine's and one user's: what others have is not even read.
  private func apps(all: Bool, orOf user: UInt32?) throws(StoreError) -> [InstalledApp] {
    let apps = try use { (database) throws(StoreError) in
      let rows = try database.rows(
        """
        SELECT id, identifier, user, name, executable, version, \
        short_version, team, path, seal, installed, root
        FROM apps WHERE ?1 OR user IS NULL OR user = ?2 ORDER BY identifier, user
        """, .integer(all ? 1 : 0), .optional(user)
      ) { (row) throws(StoreError) in try Row(row, database.path) }
      var apps: [InstalledApp] = []
      for row in rows { apps.append(try row.complete(database)) }
      return apps
    }
    return try withoutFormerHolders(apps, of: user, \.path)
  }

  /// The app of that identifier that is there for a user: their own, or the machine's.
  ///
  /// With no user, the machine's. An own one in a home that was ejected hides nobody else's.
  package func app(_ identifier: AppIdentifier, for user: UInt32?) throws(StoreError) -> InstalledApp? {
    let lost = try lostApp(identifier, of: user)
    let found = try use { (database) throws(StoreError) in
      try Self.app(identifier, for: user, hiding: lost, in: database)
    }
    guard let found, found.user != nil, try withoutFormerHolders([found], of: user, \.path).isEmpty else {
      return found
    }
    return try use { (database) throws(StoreError) in try Self.find(identifier, of: nil, in: database) }
  }

  static func app(
    _ identifier: AppIdentifier, for user: UInt32?, hiding lost: InstalledApp?,
    in database: borrowing Database
  ) throws(StoreError) -> InstalledApp? {
    var own: InstalledApp?
    if let user { own = try find(identifier, of: user, in: database) }
    if let own, own != lost { return own }
    return try find(identifier, of: nil, in: database) ?? own
  }

  /// Notes an app that was not there.
  package func add(_ app: InstalledApp) throws(StoreError) {
    try changeTypes(of: app.user) { (database) throws(StoreError) in try Self.add(app, to: database) }
  }

  static func add(_ app: InstalledApp, to database: borrowing Database) throws(StoreError) {
    if let known = try row(of: app.identifier, of: app.user, in: database) {
      throw .appExists(identifier: known.app.identifier.text, path: known.app.path)
    }
    try database.run(
      """
      INSERT INTO apps
        (identifier, user, name, executable, version, short_version, team, path, seal, installed, root)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      .text(app.identifier.text), .optional(app.user), .text(app.name), .text(app.executable),
      .text(app.version), .text(app.shortVersion), .text(app.team), .text(app.path), .bytes(app.seal),
      .integer(app.installed), .optional(app.root))
    try noteBelongings(of: app, in: database)
    try takeOver(by: app, in: database)
    try keepGrants(onlyOf: app, in: database)
    try keepConsents(onlyOf: app, in: database)
  }

  /// Notes another version of an app that is there.
  ///
  /// The containers of groups that it leaves are marked for removal, as if it had been removed.
  package func update(_ app: InstalledApp) throws(StoreError) {
    try changeTypes(of: app.user) { (database) throws(StoreError) in try Self.update(app, in: database) }
  }

  static func update(_ app: InstalledApp, in database: borrowing Database) throws(StoreError) {
    guard let known = try row(of: app.identifier, of: app.user, in: database) else {
      throw .noApp(identifier: app.identifier.text)
    }
    var before = try known.complete(database)
    // If another root speaks for the team by now, the team's containers are under that one.
    if before.team.hasSameBytes(as: app.team) { before.root = app.root }
    try database.run(
      """
      UPDATE apps SET name = ?, executable = ?, version = ?, short_version = ?, team = ?, path = ?,
        seal = ?, installed = ?, root = ?
      WHERE id = ?
      """,
      .text(app.name), .text(app.executable), .text(app.version), .text(app.shortVersion),
      .text(app.team), .text(app.path), .bytes(app.seal), .integer(app.installed), .optional(app.root),
      .integer(known.id))
    try database.run("DELETE FROM app_groups WHERE app = ?", .integer(known.id))
    try database.run("DELETE FROM app_clouds WHERE app = ?", .integer(known.id))
    try database.run("DELETE FROM updates WHERE app = ?", .integer(known.id))
    try database.run("DELETE FROM declarations WHERE app = ?", .integer(known.id))
    try askAgain(of: app.user, in: database)
    try noteBelongings(of: app, in: database)
    try takeOver(by: app, formerGroups: before.groups, in: database)
    try release(.group, before.groups, by: before, keepingData: false, in: database)
    try keepGrants(onlyOf: app, in: database)
    try keepConsents(onlyOf: app, in: database)
  }

  /// Takes an app off the list.
  ///
  /// Its containers are marked for removal from this moment or, if the caller wants that, as kept: which ones
  /// says ``release(_:_:by:keepingData:in:)``.
  ///
  /// What lies in iCloud stays: it is the user's, and other machines may have it too.
  package func remove(
    _ identifier: AppIdentifier, of user: UInt32?, keepingData: Bool
  ) throws(StoreError) -> InstalledApp {
    try changeTypes(of: user) { (database) throws(StoreError) in
      try Self.remove(identifier, of: user, keepingData: keepingData, from: database)
    }
  }

  @discardableResult
  static func remove(
    _ identifier: AppIdentifier, of user: UInt32?, keepingData: Bool, from database: borrowing Database
  ) throws(StoreError) -> InstalledApp {
    guard let row = try row(of: identifier, of: user, in: database) else {
      throw .noApp(identifier: identifier.text)
    }
    let app = try row.complete(database)
    try database.run("DELETE FROM apps WHERE id = ?", .integer(row.id))
    try askAgain(of: user, in: database)
    // Data can be kept for whichever app comes next; trust can't.
    try dropGrants(of: app, in: database)
    try dropConsents(of: app, in: database)
    try release(.data, [app.identifier], by: app, keepingData: keepingData, in: database)
    try release(.group, app.groups, by: app, keepingData: keepingData, in: database)
    return app
  }

  /// The app of exactly that user, or of the machine.
  static func find(
    _ identifier: AppIdentifier, of user: UInt32?, in database: borrowing Database
  ) throws(StoreError) -> InstalledApp? {
    try row(of: identifier, of: user, in: database)?.complete(database)
  }

  /// The app whose bundle is there.
  static func app(at path: String, in database: borrowing Database) throws(StoreError) -> InstalledApp? {
    let file = database.path
    let found = try database.rows(
      """
      SELECT id, identifier, user, name, executable, version, short_version, team, path, seal, installed, root
      FROM apps WHERE path = ?
      """, .text(path)
    ) { (row) throws(StoreError) in try Row(row, file) }.first
    return try found?.complete(database)
  }

  /// The number of the app of exactly that user, or of the machine.
  static func number(
    of identifier: AppIdentifier, of user: UInt32?, in database: borrowing Database
  ) throws(StoreError) -> Int64? {
    try row(of: identifier, of: user, in: database)?.id
  }

  private static func row(
    of identifier: AppIdentifier, of user: UInt32?, in database: borrowing Database
  ) throws(StoreError) -> Row? {
    let path = database.path
    let read = { (row: Columns) throws(StoreError) in try Row(row, path) }
    // No index serves a user that may be none.
    let rows =
      if let user {
        try database.rows(usersAppStatement, .text(identifier.text), .integer(Int64(user)), read: read)
      } else {
        try database.rows(everyonesAppStatement, .text(identifier.text), read: read)
      }
    return rows.first
  }

  static let usersAppStatement: StaticString = """
    SELECT id, identifier, user, name, executable, version, short_version, team, path, seal, installed, root
    FROM apps WHERE identifier = ? AND user = ?
    """
  static let everyonesAppStatement: StaticString = """
    SELECT id, identifier, user, name, executable, version, short_version, team, path, seal, installed, root
    FROM apps WHERE identifier = ? AND user IS NULL
    """

  private static func noteBelongings(
    of app: InstalledApp, in database: borrowing Database
  ) throws(StoreError) {
    guard let known = try row(of: app.identifier, of: app.user, in: database) else { return }
    for (group, position) in zip(app.groups, Int64(0)...) {
      try database.run(
        "INSERT OR IGNORE INTO app_groups (app, position, identifier) VALUES (?, ?, ?)",
        .integer(known.id), .integer(position), .text(group.text))
    }
    for (cloud, position) in zip(app.clouds, Int64(0)...) {
      try database.run(
        "INSERT OR IGNORE INTO app_clouds (app, position, identifier) VALUES (?, ?, ?)",
        .integer(known.id), .integer(position), .text(cloud.text))
    }
  }

  /// A row of apps; the app's groups and clouds are in other tables.
  private struct Row {
    let id: Int64
    let app: InstalledApp

    init(_ row: Columns, _ path: String) throws(StoreError) {
      id = try row.integer(0)
      app = InstalledApp(
        identifier: try row.identifier(1, path), user: try row.user(2, path), name: try row.text(3),
        executable: try row.text(4), version: try row.text(5), shortVersion: try row.text(6),
        team: try row.text(7), root: try row.digest(11), path: try row.text(8), seal: try row.bytes(9),
        installed: try row.integer(10))
    }

    func complete(_ database: borrowing Database) throws(StoreError) -> InstalledApp {
      let path = database.path
      var app = app
      app.groups = try database.rows(
        "SELECT identifier FROM app_groups WHERE app = ? ORDER BY position", .integer(id)
      ) { (row) throws(StoreError) in try row.identifier(0, path) }
      app.clouds = try database.rows(
        "SELECT identifier FROM app_clouds WHERE app = ? ORDER BY position", .integer(id)
      ) { (row) throws(StoreError) in try row.identifier(0, path) }
      return app
    }
  }
}
