// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy

// The containers that there are, or that were about to be made: a container is noted before it is made and
// forgotten after it is gone, so none is ever unknown.

extension Registry {
  /// A user can have so many, those included whose apps are gone.
  package static let containerLimitOfUser = 10_000

  /// Throws if a container is not noted and its user has as many as a user can have.
  private static func requireRoom(
    for container: ContainerRecord, in database: borrowing Database
  ) throws(StoreError) {
    let known = try database.count(
      "SELECT count(*) FROM containers WHERE kind = ? AND identifier = ? AND user = ?",
      .text(container.kind.rawValue), .text(container.identifier.text), .integer(Int64(container.user)))
    guard known == 0 else { return }
    let count = try database.count(
      "SELECT count(*) FROM containers WHERE user = ?", .integer(Int64(container.user)))
    guard count < containerLimitOfUser else {
      throw .tooManyContainers(user: container.user, limit: containerLimitOfUser)
    }
  }

  /// All containers that fit what is given.
  package func containers(
    kind: ContainerKind? = nil, identifier: AppIdentifier? = nil, user: UInt32? = nil,
    isMarkedForRemoval: Bool? = nil
  ) throws(StoreError) -> [ContainerRecord] {
    let isMarked: Database.Value = isMarkedForRemoval.map { .integer($0 ? 1 : 0) } ?? .null
    if let kind, let identifier, let user {
      return try withoutFormerHolders(containers(kind, identifier, user, isMarked), of: user, \.path)
    }
    let found = try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows(
        """
        SELECT uuid, kind, identifier, user, path, doomed, inode, handle, created, team, root, kept
        FROM containers
        WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR identifier = ?2) AND (?3 IS NULL OR user = ?3)
          AND (?4 IS NULL OR doomed = ?4)
        ORDER BY path
        """,
        kind.map { .text($0.rawValue) } ?? .null, identifier.map { .text($0.text) } ?? .null, .optional(user),
        isMarked
      ) { (row) throws(StoreError) in try ContainerRecord(row, path) }
    }
    return try withoutFormerHolders(found, of: user, \.path)
  }

  /// The one of which all is given that makes it the only one; the index finds it among everybody's.
  private func containers(
    _ kind: ContainerKind, _ identifier: AppIdentifier, _ user: UInt32, _ isMarked: Database.Value
  ) throws(StoreError) -> [ContainerRecord] {
    try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows(
        """
        SELECT uuid, kind, identifier, user, path, doomed, inode, handle, created, team, root, kept
        FROM containers WHERE kind = ?1 AND identifier = ?2 AND user = ?3 AND (?4 IS NULL OR doomed = ?4)
        """, .text(kind.rawValue), .text(identifier.text), .integer(Int64(user)), isMarked
      ) { (row) throws(StoreError) in try ContainerRecord(row, path) }
    }
  }

  /// A container without an app is nobody's: nothing would ever remove it.
  private static func require(
    _ app: InstalledApp, for container: ContainerRecord, hiding lost: InstalledApp?,
    in database: borrowing Database
  ) throws(StoreError) {
    let current = try Self.app(app.identifier, for: container.user, hiding: lost, in: database)
    let isWanted =
      switch container.kind {
      case .data: true
      case .group: current?.groups.contains { $0.isSame(as: container.identifier) } == true
      case .cloud: current?.clouds.contains { $0.isSame(as: container.identifier) } == true
      }
    guard let current, current.signer == app.signer, isWanted else {
      throw .noApp(identifier: app.identifier.text)
    }
  }

  /// Notes a container that is about to be made, or gives what is noted of it already.
  ///
  /// A home that was renamed or given to another account has containers that are noted for its former owner:
  /// what is there stays the same team's.
  ///
  /// Throws if the app is given for which it is made, and is not installed any more.
  package func note(
    _ container: ContainerRecord, for app: InstalledApp? = nil
  ) throws(StoreError) -> ContainerRecord {
    var lost: InstalledApp?
    if let app { lost = try lostApp(app.identifier, of: container.user) }
    let hidden = lost
    return try change { (database) throws(StoreError) in
      if let app { try Self.require(app, for: container, hiding: hidden, in: database) }
      let path = database.path
      let former = try database.rows(
        """
        SELECT uuid, kind, identifier, user, path, doomed, inode, handle, created, team, root, kept
        FROM containers WHERE path = ? AND NOT (kind = ? AND identifier = ? AND user = ?)
        """,
        .text(container.path), .text(container.kind.rawValue), .text(container.identifier.text),
        .integer(Int64(container.user))
      ) { (row) throws(StoreError) in try ContainerRecord(row, path) }.first
      let team = former?.team ?? container.team
      try database.run(
        "DELETE FROM containers WHERE path = ? AND NOT (kind = ? AND identifier = ? AND user = ?)",
        .text(container.path), .text(container.kind.rawValue), .text(container.identifier.text),
        .integer(Int64(container.user)))
      try Self.requireRoom(for: container, in: database)
      try database.run(
        """
        INSERT INTO containers (uuid, kind, identifier, user, path, team, root) VALUES (?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (kind, identifier, user) DO UPDATE SET path = excluded.path
        """,
        .text(container.uuid), .text(container.kind.rawValue), .text(container.identifier.text),
        .integer(Int64(container.user)), .text(container.path),
        team.map { .text($0.text) } ?? .null, .optional(team?.root))
      if let former {
        // It may be known already, in another home of the user's.
        try database.run(
          """
          UPDATE containers SET team = ?, root = ?, doomed = ?
          WHERE kind = ? AND identifier = ? AND user = ?
          """,
          team.map { .text($0.text) } ?? .null, .optional(team?.root),
          .integer(former.isMarkedForRemoval ? 1 : 0), .text(container.kind.rawValue),
          .text(container.identifier.text), .integer(Int64(container.user)))
      }
      let noted = try database.rows(
        """
        SELECT uuid, kind, identifier, user, path, doomed, inode, handle, created, team, root, kept
        FROM containers
        WHERE kind = ? AND identifier = ? AND user = ?
        """,
        .text(container.kind.rawValue), .text(container.identifier.text), .integer(Int64(container.user))
      ) { (row) throws(StoreError) in try ContainerRecord(row, path) }
      return noted.first ?? container
    }
  }

  /// Notes which directory a container is.
  package func note(_ identity: ObjectIdentity, of container: ContainerRecord) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "UPDATE containers SET inode = ?, handle = ?, created = ? WHERE uuid = ?",
        .integer(Int64(bitPattern: identity.inode)), .bytes(identity.handle), .integer(identity.created),
        .text(container.uuid))
      try Self.requireChange(of: container, in: database)
    }
  }

  /// Throws if the last statement has found no row of a container: somebody has put another one in its place
  /// meanwhile, and whoever makes it has to begin again.
  static func requireChange(
    of container: ContainerRecord, in database: borrowing Database
  ) throws(StoreError) {
    guard database.changes > 0 else { throw .appBusy(identifier: container.identifier.text) }
  }

  /// Says which tree it is that the containers are in: in a copy of it, all directories are others than those
  /// that were noted.
  package func note(tree: ObjectIdentity) throws(StoreError) {
    let known = try use { (database) throws(StoreError) in
      try database.rows("SELECT inode, handle, created FROM trees") { (row) throws(StoreError) in
        ObjectIdentity(
          inode: UInt64(bitPattern: try row.integer(0)), handle: try row.bytes(1), created: try row.integer(2)
        )
      }.first
    }
    if known == tree { return }
    try change { (database) throws(StoreError) in
      if known != nil {
        try database.run("UPDATE containers SET inode = NULL")
        // Homes elsewhere are known by their volumes.
        try database.run("UPDATE removed SET home_inode = NULL WHERE home_inode <> 0")
      }
      try database.run(
        "INSERT OR REPLACE INTO trees (one, inode, handle, created) VALUES (1, ?, ?, ?)",
        .integer(Int64(bitPattern: tree.inode)), .bytes(tree.handle), .integer(tree.created))
    }
  }

  /// Gives a container another number.
  func renumber(_ container: ContainerRecord) throws(StoreError) -> ContainerRecord {
    let renumbered = ContainerRecord(
      uuid: UUIDText.random(), kind: container.kind, identifier: container.identifier, user: container.user,
      path: container.path, isMarkedForRemoval: container.isMarkedForRemoval, identity: container.identity,
      team: container.team, keeper: container.keeper)
    try change { (database) throws(StoreError) in
      try database.run(
        "UPDATE containers SET uuid = ? WHERE uuid = ?", .text(renumbered.uuid), .text(container.uuid))
    }
    return renumbered
  }

  /// Forgets a container that is gone.
  package func forget(_ container: ContainerRecord) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run("DELETE FROM containers WHERE uuid = ?", .text(container.uuid))
      try Self.dropGrants(into: container.path, in: database)
    }
  }
}

extension ContainerRecord {
  init(_ row: Columns, _ path: String) throws(StoreError) {
    guard let kind = ContainerKind(rawValue: try row.text(1)) else {
      throw .registryDamaged(path: path, what: "a container has an unknown kind")
    }
    guard let user = try row.user(3, path) else {
      throw .registryDamaged(path: path, what: "a container belongs to nobody")
    }
    let identity: ObjectIdentity? =
      row.isNull(6)
      ? nil
      : ObjectIdentity(
        inode: UInt64(bitPattern: try row.integer(6)), handle: try row.bytes(7), created: try row.integer(8))
    let team: Team? = row.isNull(9) ? nil : Team(try row.text(9), root: try row.digest(10))
    self.init(
      uuid: try row.uuid(0, path), kind: kind, identifier: try row.identifier(2, path), user: user,
      path: try row.text(4), isMarkedForRemoval: try row.integer(5) != 0, identity: identity, team: team,
      keeper: Keeper(rawValue: try row.integer(11)))
  }
}

extension Columns {
  /// An identifier; names of directories are made of it, so one that is none is damage.
  func identifier(_ index: Int32, _ path: String) throws(StoreError) -> AppIdentifier {
    let text = try text(index)
    guard let identifier = AppIdentifier(text) else {
      throw .registryDamaged(path: path, what: "'\(text)' is not an identifier")
    }
    return identifier
  }

  /// The number of a container; directories are named after it, so one that could be no name is damage.
  func uuid(_ index: Int32, _ path: String) throws(StoreError) -> String {
    let text = try text(index)
    guard (try? text.withName({ $0.isComponent })) == true else {
      throw .registryDamaged(path: path, what: "'\(text)' is not the number of a container")
    }
    return text
  }

  /// A user's number, or nil for all users.
  func user(_ index: Int32, _ path: String) throws(StoreError) -> UInt32? {
    if isNull(index) { return nil }
    guard let uid = UInt32(exactly: try integer(index)) else {
      throw .registryDamaged(path: path, what: "a user has an invalid ID")
    }
    return uid
  }
}

extension Database.Value {
  /// A user's number, or none for all users.
  static func optional(_ user: UInt32?) -> Database.Value { user.map { .integer(Int64($0)) } ?? .null }
}
