// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// A container that was removed, and can be restored as long as it is not being deleted.
package struct RemovedContainer: Codable, Equatable, Sendable {
  /// By which people name it; no other one ever gets it.
  package let number: Int64
  /// As it was.
  package let container: ContainerRecord
  /// In seconds since 1970.
  package let removed: Int64
  package let isBeingDeleted: Bool
  /// The home that it was removed from, whatever that is called by now; nil where that was not noted.
  ///
  /// Nobody is told.
  var home: ObjectIdentity?

  private enum CodingKeys: CodingKey { case number, container, removed, isBeingDeleted }
}

// The containers that were removed. Each row is its user's: no statement here changes those of another one.

extension Registry {
  /// A user can restore so many at a time; of more, the oldest of the team with most of them are deleted.
  ///
  /// So whoever makes an app drop all of its groups does not push out what other teams' apps have left.
  package static let mostRemoved = 100

  /// All, or those of a user, the latest first.
  package func removedContainers(of user: UInt32? = nil) throws(StoreError) -> [RemovedContainer] {
    try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows(
        """
        SELECT uuid, kind, identifier, user, path, 0, inode, handle, created, team, root, 0,
          id, removed, deleting, home_inode, home_handle, home_created
        FROM removed WHERE user = ?1 OR ?1 IS NULL ORDER BY id DESC
        """, .optional(user)
      ) { (row) throws(StoreError) in
        RemovedContainer(
          number: try row.integer(12), container: try ContainerRecord(row, path),
          removed: try row.integer(13), isBeingDeleted: try row.integer(14) != 0,
          home: row.isNull(15)
            ? nil
            : ObjectIdentity(
              inode: UInt64(bitPattern: try row.integer(15)), handle: try row.bytes(16),
              created: try row.integer(17)))
      }
    }
  }

  /// Notes that a container is where it can be restored from, and is no container any more.
  ///
  /// What says its UUID may lie on a disk that its user has at home: no row of another user's gives way.
  @discardableResult
  func noteRemoval(
    of container: ContainerRecord, from home: ObjectIdentity? = nil, at time: Int64
  ) throws(StoreError) -> RemovedContainer {
    let object = Self.values(home)
    return try change { (database) throws(StoreError) in
      let whose: [Database.Value] = [.text(container.uuid), .integer(Int64(container.user))]
      try database.run("DELETE FROM containers WHERE uuid = ? AND user = ?", whose[0], whose[1])
      try database.run("DELETE FROM removed WHERE uuid = ? AND user = ?", whose[0], whose[1])
      try Self.dropGrants(into: container.path, in: database)
      try database.run(
        """
        INSERT INTO removed
          (uuid, kind, identifier, user, path, team, root, inode, handle, created, removed,
           home_inode, home_handle, home_created)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        .text(container.uuid), .text(container.kind.rawValue), .text(container.identifier.text),
        .integer(Int64(container.user)), .text(container.path),
        container.team.map { .text($0.text) } ?? .null, .optional(container.team?.root),
        container.identity.map { .integer(Int64(bitPattern: $0.inode)) } ?? .null,
        container.identity.map { .bytes($0.handle) } ?? .null,
        container.identity.map { .integer($0.created) } ?? .null, .integer(time), object[0], object[1],
        object[2])
      // It is never among those that make way: it is the latest of its team.
      let noted = RemovedContainer(
        number: database.lastRow, container: container, removed: time, isBeingDeleted: false, home: home)
      // What waits for another home may be somebody else's, who had the number before.
      try database.run(
        """
        UPDATE removed SET deleting = 1 WHERE user = ?1
          AND home_inode IS ?3 AND home_handle IS ?4 AND home_created IS ?5
          AND id NOT IN (
            SELECT id FROM (
              SELECT id, row_number() OVER (PARTITION BY team, root ORDER BY id DESC) AS place
              FROM removed WHERE user = ?1 AND deleting = 0
                AND home_inode IS ?3 AND home_handle IS ?4 AND home_created IS ?5)
            ORDER BY place, id DESC LIMIT ?2)
        """, .integer(Int64(container.user)), .integer(Int64(Self.mostRemoved)), object[0], object[1],
        object[2])
      return noted
    }
  }

  /// Notes which home a removed container is from, and for whom.
  func note(
    _ home: ObjectIdentity, of removed: RemovedContainer, for owner: UInt32
  ) throws(StoreError) {
    let object = Self.values(home)
    try change { (database) throws(StoreError) in
      try database.run(
        """
        UPDATE removed SET user = ?, home_inode = ?, home_handle = ?, home_created = ?
        WHERE id = ? AND user = ?
        """, .integer(Int64(owner)), object[0], object[1], object[2], .integer(removed.number),
        .integer(Int64(removed.container.user)))
    }
  }

  private static func values(_ object: ObjectIdentity?) -> [Database.Value] {
    guard let object else { return [.null, .null, .null] }
    return [.integer(Int64(bitPattern: object.inode)), .bytes(object.handle), .integer(object.created)]
  }

  /// Notes that a removed container is about to be deleted: from now on it can't be restored; false if it is
  /// not there any more.
  func noteDeletion(of removed: RemovedContainer) throws(StoreError) -> Bool {
    try change { (database) throws(StoreError) in
      try database.run("UPDATE removed SET deleting = 1 WHERE id = ?", .integer(removed.number))
      return database.changes > 0
    }
  }

  /// Notes a container that is about to be put back at a path of its user; it is kept for its app's next
  /// installation.
  ///
  /// What is noted of another one there, is not there any more. It is another container from now on: until
  /// it is in its place, the removed one is still there under the old number.
  func noteRestoration(of removed: RemovedContainer, at path: String) throws(StoreError) -> ContainerRecord {
    let old = removed.container
    let restored = ContainerRecord(
      uuid: UUIDText.random(), kind: old.kind, identifier: old.identifier, user: old.user, path: path,
      identity: old.identity, team: old.team, keeper: .owner)
    try change { (database) throws(StoreError) in
      let rows = try database.rows(
        "SELECT 1 FROM removed WHERE id = ? AND deleting = 0", .integer(removed.number)
      ) { (row) throws(StoreError) in try row.integer(0) }
      guard !rows.isEmpty else { throw .noRemovedContainer(number: removed.number) }
      try database.run(
        "DELETE FROM containers WHERE path = ?1 OR kind = ?2 AND identifier = ?3 AND user = ?4",
        .text(path), .text(old.kind.rawValue), .text(old.identifier.text), .integer(Int64(old.user)))
      try Self.dropGrants(into: path, in: database)
      try database.run(
        """
        INSERT INTO containers
          (uuid, kind, identifier, user, path, team, root, inode, handle, created, kept)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        .text(restored.uuid), .text(old.kind.rawValue), .text(old.identifier.text),
        .integer(Int64(old.user)), .text(path), old.team.map { .text($0.text) } ?? .null,
        .optional(old.team?.root),
        old.identity.map { .integer(Int64(bitPattern: $0.inode)) } ?? .null,
        old.identity.map { .bytes($0.handle) } ?? .null,
        old.identity.map { .integer($0.created) } ?? .null, .integer(Keeper.owner.rawValue))
    }
    return restored
  }

  /// Forgets a removed container that is restored or gone.
  func forget(_ removed: RemovedContainer) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run("DELETE FROM removed WHERE id = ?", .integer(removed.number))
    }
  }
}
