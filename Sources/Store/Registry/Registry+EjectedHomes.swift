// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

// Homes elsewhere that are ejected may come back, with what lies beside them and what is noted of their apps
// and containers. Until then nothing of that is forgotten.

extension Registry {
  struct EjectedHome {
    let name: [UInt8]
    /// Nil if nobody knows.
    let owner: UInt32?
  }

  /// The homes that were ejected and have not come back.
  func ejectedHomes() throws(StoreError) -> [EjectedHome] {
    try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows("SELECT name, owner FROM ejected_homes") { (row) throws(StoreError) in
        EjectedHome(name: try row.bytes(0), owner: try row.user(1, path))
      }
    }
  }

  /// Whether a path below the root of the tree leads into a home that was ejected and may come back.
  package func isInEjectedHome(_ path: String) throws(StoreError) -> Bool {
    guard let home = Homes.name(in: path) else { return false }
    return try ejectedHomes().contains { $0.name.elementsEqual(home.utf8) }
  }

  /// Whether another home of a name was ejected than the one at a place, and may come back.
  package func hasEjectedHome(_ name: [UInt8], besides source: [UInt8]) throws(StoreError) -> Bool {
    try use { (database) throws(StoreError) in
      try database.count(
        "SELECT count(*) FROM ejected_homes WHERE name = ? AND path <> ?", .bytes(name), .bytes(source)) > 0
    }
  }

  /// What is noted of a home's containers is another one's of its name that was ejected: which directories
  /// those are is noted anew when it comes back.
  static func forgetObjects(
    inHome name: String, of user: UInt32?, in database: borrowing Database
  ) throws(StoreError) {
    try database.run(
      """
      UPDATE containers SET inode = NULL
      WHERE (?1 IS NULL OR user = ?1) AND substr(path, 1, length(?2)) = ?2
      """, .optional(user), .text("Users/\(name)/"))
  }

  /// Forgets the volume of a home that is ejected.
  ///
  /// The home may come back, with all that is noted of it. Where somebody may still use it, nothing of it
  /// stays granted.
  package func ejectHome(_ volume: VolumeRecord, droppingGrants: Bool = false) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        """
        INSERT OR REPLACE INTO ejected_homes (name, path, owner)
        SELECT name, path, (SELECT owner FROM home_owners WHERE volume = ?1)
        FROM volumes WHERE id = ?1 AND place = 'Users'
        """, .integer(volume.id))
      try Self.removeVolume(volume.id, in: database)
      if droppingGrants { try Self.dropGrants(of: volume, in: database) }
    }
  }

  /// Notes that the volume of a home is lost, which may come back as if it was ejected.
  func noteLostHome(_ name: String, at source: String) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "INSERT OR IGNORE INTO ejected_homes (name, path) VALUES (?, ?)", .bytes(Array(name.utf8)),
        .bytes(Array(source.utf8)))
    }
  }
}
