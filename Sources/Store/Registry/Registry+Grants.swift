// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// What users have granted apps.

extension Registry {
  /// One app of one user has at most so many: all of them are in memory while it runs.
  package static let mostGrantsOfOne = 10_000
  /// All apps of one user together; what others have granted does not count.
  package static let mostGrantsOfUser = 20_000

  /// The numbers of all grants but those in ejected homes, as everywhere here.
  ///
  /// Whoever needs nothing else does not pay for the paths, which one user can make long and many.
  package func grantNumbers() throws(StoreError) -> Set<Int64> {
    try use { (database) throws(StoreError) in
      var numbers: Set<Int64> = []
      // Indices have them, so the rows themselves are not read.
      try database.each(
        "SELECT id FROM grants WHERE id NOT IN (SELECT id FROM grants WHERE ejected IS NOT NULL)"
      ) { (row) throws(StoreError) in
        numbers.insert(try row.integer(0))
      }
      return numbers
    }
  }

  /// Whose apps' grants are, by their numbers: those to a team's apps under whatever root, or some.
  package func teamsOfGrants(
    to team: String, among numbers: Set<Int64>? = nil
  ) throws(StoreError) -> [Int64: Team] {
    try use { (database) throws(StoreError) in
      let rows = try database.rows("SELECT id, root FROM grants WHERE team = ?", .text(team)) {
        (row) throws(StoreError) in (try row.integer(0), Team(team, root: try row.digest(1)))
      }
      return Dictionary(rows) { $1 }.filter { numbers?.contains($0.key) ?? true }
    }
  }

  /// The same of all teams that were assigned to another root before.
  package func teamsOfGrantsWithFormerRoots() throws(StoreError) -> [Int64: Team] {
    try use { (database) throws(StoreError) in
      let rows = try database.rows(
        "SELECT id, team, root FROM grants WHERE team IN (SELECT team FROM former_roots)"
      ) { (row) throws(StoreError) in
        (try row.integer(0), Team(try row.text(1), root: try row.digest(2)))
      }
      return Dictionary(rows) { $1 }
    }
  }

  /// All grants, or those of some numbers, in the order in which they were given.
  package func grants(among numbers: Set<Int64>? = nil) throws(StoreError) -> [GrantRecord] {
    try use { (database) throws(StoreError) in
      var grants: [GrantRecord] = []
      // Many paths have the same names, which are kept once.
      var names: Set<[UInt8]> = []
      let path = database.path
      // However many there are: that no user has too many is seen to when they are added.
      try database.each(
        """
        SELECT id, identifier, user, team, path, writable, directory, inode, handle, created, granted,
          root
        FROM grants WHERE ejected IS NULL ORDER BY id
        """
      ) { (row) throws(StoreError) in
        if let numbers, try !numbers.contains(row.integer(0)) { return }
        var grant = try GrantRecord(row, path)
        // One that no daemon could use keeps nobody from the others.
        guard GrantPath.isPath(grant.path) else { return }
        grant.path = grant.path.map { names.insert($0).memberAfterInsert }
        grants.append(grant)
      }
      return grants
    }
  }

  /// Those of a user that lie in others' homes that were ejected.
  package func grantsInEjectedHomes(of user: UInt32) throws(StoreError) -> [GrantRecord] {
    try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows(
        """
        SELECT id, identifier, user, team, path, writable, directory, inode, handle, created, granted,
          root
        FROM grants WHERE ejected IS NOT NULL AND user = ? ORDER BY id
        """, .integer(Int64(user))
      ) { (row) throws(StoreError) in try GrantRecord(row, path) }
    }
  }

  /// Has what was granted in homes count again that were ejected and have come back, and gives its numbers.
  package func takeUpGrants() throws(StoreError) -> Set<Int64> {
    let back = try use { (database) throws(StoreError) in
      try database.rows(
        """
        SELECT grants.id FROM grants JOIN volumes ON volumes.path = grants.ejected
          JOIN home_owners ON home_owners.volume = volumes.id
        WHERE grants.ejected IS NOT NULL AND volumes.place = 'Users'
          AND substr(CAST(grants.path || '/' AS BLOB), 1, length(volumes.name) + 7)
            = CAST('Users/' || volumes.name || '/' AS BLOB)
        """
      ) { (row) throws(StoreError) in try row.integer(0) }
    }
    if back.isEmpty { return [] }
    try change { (database) throws(StoreError) in
      for number in back {
        try database.run("UPDATE grants SET ejected = NULL WHERE id = ?", .integer(number))
      }
    }
    return Set(back)
  }

  /// Notes a grant, and gives it with its number.
  package func add(_ grant: GrantRecord) throws(StoreError) -> GrantRecord {
    try Self.requireAccount(grant.user)
    return try change { (database) throws(StoreError) in
      let counts = try database.rows(
        "SELECT count(*), count(*) FILTER (WHERE identifier = ?) FROM grants WHERE user = ?",
        .text(grant.identifier.text), .integer(Int64(grant.user))
      ) { (row) throws(StoreError) in (user: try row.integer(0), app: try row.integer(1)) }
      guard let count = counts.first, count.app < Self.mostGrantsOfOne else {
        throw .tooManyGrants(identifier: grant.identifier.text)
      }
      guard count.user < Self.mostGrantsOfUser else { throw .tooManyGrantsOfUser(user: grant.user) }
      try noteHolder(of: grant.user, in: database)
      try database.run(
        """
        INSERT INTO grants
          (identifier, user, team, path, writable, directory, inode, handle, created, granted, root)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        .text(grant.identifier.text), .integer(Int64(grant.user)), .text(grant.team.text),
        .bytes(GrantPath.path(grant.path)), .integer(grant.isWritable ? 1 : 0),
        .integer(grant.isDirectory ? 1 : 0), .integer(Int64(bitPattern: grant.identity.inode)),
        .bytes(grant.identity.handle), .integer(grant.identity.created), .integer(grant.granted),
        .optional(grant.team.root))
      var noted = grant
      noted.id = database.lastRow
      return noted
    }
  }

  /// Notes where grants are now, of what, and with which access; those that are no more stay so.
  package func update(_ grants: [GrantRecord]) throws(StoreError) {
    try change { (database) throws(StoreError) in
      for grant in grants where GrantPath.isPath(grant.path) {
        try database.run(
          "UPDATE grants SET path = ?, writable = ?, inode = ?, handle = ?, created = ? WHERE id = ?",
          .bytes(GrantPath.path(grant.path)), .integer(grant.isWritable ? 1 : 0),
          .integer(Int64(bitPattern: grant.identity.inode)), .bytes(grant.identity.handle),
          .integer(grant.identity.created), .integer(grant.id))
      }
    }
  }

  /// Forgets grants that are no more; those in ejected homes, which nobody knows, only if they were taken
  /// back.
  package func removeGrants(_ numbers: [Int64], takenBack: Set<Int64> = []) throws(StoreError) {
    try change { (database) throws(StoreError) in
      for number in numbers {
        try database.run(
          "DELETE FROM grants WHERE id = ? AND (ejected IS NULL OR ?)", .integer(number),
          .integer(takenBack.contains(number) ? 1 : 0))
      }
    }
  }

  /// An app is installed: what was granted to another team's of the same identifier is not for this one.
  static func keepGrants(onlyOf app: InstalledApp, in database: borrowing Database) throws(StoreError) {
    try database.run(
      keepGrantsStatement, .text(app.identifier.text), .text(app.team), .optional(app.user),
      .optional(app.root))
  }

  static let keepGrantsStatement: StaticString = """
    DELETE FROM grants WHERE identifier = ?1 COLLATE NOCASE AND \
    NOT (team = ?2 AND root IS ?4) AND (user = ?3 OR ?3 IS NULL
      AND NOT EXISTS (SELECT 1 FROM apps WHERE apps.identifier = ?1 AND apps.user = grants.user))
    """

  /// An app is gone, and what was granted to it.
  static func dropGrants(of app: InstalledApp, in database: borrowing Database) throws(StoreError) {
    try database.run(dropGrantsStatement, .text(app.identifier.text), .optional(app.user))
  }

  static let dropGrantsStatement: StaticString = """
    DELETE FROM grants WHERE identifier = ?1 COLLATE NOCASE AND (user = ?2 OR ?2 IS NULL
      AND NOT EXISTS (SELECT 1 FROM apps WHERE apps.identifier = ?1 AND apps.user = grants.user))
    """
}

// A grant stays with its name when its object goes. But what is in a container or a home is somebody's, and
// the next one of that name is somebody else's: nobody has granted anything of that.

extension Registry {
  /// A container is gone, unless another one has its place: nobody's app has anything of it any more,
  /// whoever granted it.
  static func dropGrants(into container: String, in database: borrowing Database) throws(StoreError) {
    let known = try database.count("SELECT count(*) FROM containers WHERE path = ?", .text(container))
    if known == 0 { try dropGrants(below: container + "/", in: database) }
  }

  /// The same of a directory and of all that is below it; its path ends with a slash.
  static func dropGrants(below prefix: String, in database: borrowing Database) throws(StoreError) {
    try database.run(
      """
      DELETE FROM grants
      WHERE ejected IS NULL
        AND (substr(path, 1, length(?1)) = ?1 OR path = substr(?1, 1, length(?1) - 1))
      """, .bytes(Array(prefix.utf8)))
  }

  /// A home is gone of whose name another one was ejected: what others than that one's owner have granted
  /// since is of the one that is gone.
  static func dropGrants(
    inHome name: String, besidesEjectedOneIn database: borrowing Database
  ) throws(StoreError) {
    try database.run(
      """
      DELETE FROM grants
      WHERE ejected IS NULL AND substr(CAST(path || '/' AS BLOB), 1, length(?1)) = ?1 AND NOT EXISTS (
        SELECT 1 FROM ejected_homes WHERE name = ?2 AND owner = grants.user)
      """, .bytes(Array("Users/\(name)/".utf8)), .bytes(Array(name.utf8)))
  }

  /// A home is ejected: what others than its owner have granted there gives nothing until it is back, since
  /// another one may get its name.
  static func setAsideGrants(inHome volume: VolumeRecord, in database: borrowing Database) throws(StoreError)
  {
    try database.run(
      """
      UPDATE grants SET ejected = ?1
      WHERE ejected IS NULL AND substr(CAST(path || '/' AS BLOB), 1, length(?2)) = ?2
        AND user IS NOT (SELECT owner FROM home_owners WHERE volume = ?3)
      """, .bytes(volume.path), .bytes(GrantPath.path(volume.treePath + [[]])), .integer(volume.id))
  }

  /// A volume is gone, and what was granted of it: another one may get its name.
  ///
  /// Users who have another volume of that name keep what they have granted of that one. Volumes never have
  /// names that differ by case alone, and in a store that ignores case a grant may have another spelling.
  static func dropGrants(of volume: VolumeRecord, in database: borrowing Database) throws(StoreError) {
    let names = TreeNames(ignoringCase: volume.place != .users)
    let file = database.path
    let owners = try database.rows(
      "SELECT owner, name FROM volumes WHERE place = ?", .text(volume.place.path)
    ) { (row) throws(StoreError) in
      (owner: try row.user(0, file), isOne: names.areOne([volume.name], [try row.bytes(1)]))
    }
    let kept = owners.filter(\.isOne).map(\.owner)
    if kept.contains(nil) { return }
    var gone: [Int64] = []
    try database.each(
      "SELECT id, user, path FROM grants WHERE ejected IS NULL AND substr(path, 1, length(?1)) = ?1",
      [.bytes(GrantPath.path(Array(volume.place.names.prefix(1)) + [[]]))]
    ) { (row) throws(StoreError) in
      let path = GrantPath.names(try row.bytes(2))
      guard names.isPlace(volume.treePath, atOrAbove: path), try !kept.contains(row.user(1, file)) else {
        return
      }
      gone.append(try row.integer(0))
    }
    for number in gone { try database.run("DELETE FROM grants WHERE id = ?", .integer(number)) }
  }
}

extension GrantRecord {
  fileprivate init(_ row: Columns, _ file: String) throws(StoreError) {
    let path = GrantPath.names(try row.bytes(4))
    guard let user = try row.user(2, file), !path.isEmpty else {
      throw .registryDamaged(path: file, what: "a grant has no user or no path")
    }
    self.init(
      id: try row.integer(0), identifier: try row.identifier(1, file), user: user,
      team: Team(try row.text(3), root: try row.digest(11)), path: path, isWritable: try row.integer(5) != 0,
      isDirectory: try row.integer(6) != 0,
      identity: ObjectIdentity(
        inode: UInt64(bitPattern: try row.integer(7)), handle: try row.bytes(8), created: try row.integer(9)),
      granted: try row.integer(10))
  }
}
