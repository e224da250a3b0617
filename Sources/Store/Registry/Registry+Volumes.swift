// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What is a volume of the tree.

extension Registry {
  /// All of them, in the order in which they were added.
  package func volumes() throws(StoreError) -> [VolumeRecord] {
    try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows(
        """
        SELECT id, name, path, inode, handle, created, owner, read_only, added, kind, options, place
        FROM volumes ORDER BY id
        """
      ) { (row) throws(StoreError) in try VolumeRecord(row, path) }
    }
  }

  /// The names of the homes that lie elsewhere.
  package func namesOfHomesElsewhere() throws(StoreError) -> Set<[UInt8]> {
    Set(try volumes().filter { $0.place == .users }.map(\.name))
  }

  /// Notes one, and gives it with its number.
  package func add(_ volume: VolumeRecord) throws(StoreError) -> VolumeRecord {
    try change { (database) throws(StoreError) in
      if let owner = volume.owner { try noteHolder(of: owner, in: database) }
      try database.run(
        """
        INSERT INTO volumes
          (name, path, inode, handle, created, owner, read_only, added, kind, options, place)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        .bytes(volume.name), .bytes(volume.path), .integer(Int64(bitPattern: volume.identity.inode)),
        .bytes(volume.identity.handle), .integer(volume.identity.created), .optional(volume.owner),
        .integer(volume.isReadOnly ? 1 : 0), .integer(volume.added), .integer(volume.kind.rawValue),
        .integer(volume.options.rawValue), .text(volume.place.path))
      var noted = volume
      noted.id = database.lastRow
      return noted
    }
  }

  /// Notes by what it is known.
  package func setIdentity(_ identity: ObjectIdentity, ofVolume id: Int64) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "UPDATE volumes SET inode = ?, handle = ?, created = ? WHERE id = ?",
        .integer(Int64(bitPattern: identity.inode)), .bytes(identity.handle), .integer(identity.created),
        .integer(id))
    }
  }

  package func setOptions(_ options: VolumeRecord.Options, ofVolume id: Int64) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "UPDATE volumes SET options = ? WHERE id = ?", .integer(options.rawValue), .integer(id))
    }
  }

  /// Forgets a volume that was never there, or comes again as it was.
  package func removeVolume(_ id: Int64) throws(StoreError) {
    try change { (database) throws(StoreError) in try Self.removeVolume(id, in: database) }
  }

  /// Forgets a volume for good, and with it what was granted of it.
  package func ejectVolume(_ volume: VolumeRecord) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try Self.removeVolume(volume.id, in: database)
      try Self.dropGrants(of: volume, in: database)
    }
  }

  static func removeVolume(_ id: Int64, in database: borrowing Database) throws(StoreError) {
    try database.run("DELETE FROM volumes WHERE id = ?", .integer(id))
    try database.run("DELETE FROM home_owners WHERE volume = ?", .integer(id))
  }
}

extension VolumeRecord {
  fileprivate init(_ row: Columns, _ file: String) throws(StoreError) {
    let (name, path) = (try row.bytes(1), try row.bytes(2))
    let kind = VolumeRecord.Kind(rawValue: try row.integer(9))
    let place = VolumeRecord.Place(try row.text(11))
    guard let kind, let place, !name.isEmpty, kind != .directory || path.first == UInt8(ascii: "/") else {
      throw .registryDamaged(path: file, what: "a volume has no name or no path")
    }
    self.init(
      id: try row.integer(0), in: place, name: name, kind: kind, path: path,
      identity: ObjectIdentity(
        inode: UInt64(bitPattern: try row.integer(3)), handle: try row.bytes(4), created: try row.integer(5)),
      owner: try row.user(6, file), isReadOnly: try row.integer(7) != 0, added: try row.integer(8),
      options: VolumeRecord.Options(rawValue: try row.integer(10)))
  }
}
