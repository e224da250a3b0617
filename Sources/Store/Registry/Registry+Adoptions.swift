// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// A home that is about to change hands, noted before anything in it does.
///
/// The home itself is the last object that does. So when a process was stopped, the home's owner says whether
/// the registry is to follow or the intent is to be dropped.
struct AdoptionIntent: Equatable, Sendable {
  let home: String
  let former: UInt32
  let owner: UInt32
}

extension Registry {
  func adoptions() throws(StoreError) -> [AdoptionIntent] {
    try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows("SELECT home, former, owner FROM adoptions ORDER BY home") {
        (row) throws(StoreError) in
        guard let former = try row.user(1, path), let owner = try row.user(2, path) else {
          throw .registryDamaged(path: path, what: "an adoption has no owner")
        }
        return AdoptionIntent(home: try row.text(0), former: former, owner: owner)
      }
    }
  }

  func begin(_ adoption: AdoptionIntent) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "INSERT OR REPLACE INTO adoptions (home, former, owner) VALUES (?, ?, ?)", .text(adoption.home),
        .integer(Int64(adoption.former)), .integer(Int64(adoption.owner)))
    }
  }

  func abandon(_ adoption: AdoptionIntent) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run("DELETE FROM adoptions WHERE home = ?", .text(adoption.home))
    }
  }

  /// Notes that the home is its new owner's: its containers and apps are, and nothing stays noted for the
  /// former owner's number, if `forgetsFormer`.
  ///
  /// If the new owner has an app or a container of the same name in another home, the one in this home takes
  /// its place, since this home is named after the account.
  func finish(_ adoption: AdoptionIntent, forgetsFormer: Bool) throws(StoreError) {
    try changeTypes(of: nil) { (database) throws(StoreError) in
      // Whatever number they have: the account's may have changed since they were noted.
      let values: [Database.Value] = [
        .integer(Int64(adoption.owner)), .text("Users/\(adoption.home)/"),
      ]
      try database.run(
        """
        UPDATE OR REPLACE containers SET user = ?1
        WHERE user <> ?1 AND substr(path, 1, length(?2)) = ?2
        """, values[0], values[1])
      try Self.giveApps(in: values[1], to: values[0], in: database)
      if adoption.owner != adoption.former, forgetsFormer {
        _ = try Self.forget(user: adoption.former, in: database)
      }
      try database.run("DELETE FROM adoptions WHERE home = ?", .text(adoption.home))
    }
  }
}

extension Registry {
  /// Notes the apps below a path for a user.
  ///
  /// A copy that the user has in another home is noted for the number that the one here had: accounts may
  /// have exchanged their numbers, and whoever changes apps there next finds whose it is.
  ///
  /// Updates that wait go: they were asked for under a number that is another one's.
  private static func giveApps(
    in prefix: Database.Value, to user: Database.Value, in database: borrowing Database
  ) throws(StoreError) {
    let strays = try database.rows(
      "SELECT id, user FROM apps WHERE user <> ?1 AND substr(path, 1, length(?2)) = ?2", user, prefix
    ) { (row) throws(StoreError) in (id: try row.integer(0), user: try row.integer(1)) }
    for stray in strays {
      let id = Database.Value.integer(stray.id)
      try database.run("DELETE FROM updates WHERE app = ?", id)
      let copies = try database.rows(
        """
        SELECT id FROM apps WHERE user = ?1 AND id <> ?3 AND substr(path, 1, length(?2)) <> ?2
          AND identifier = (SELECT identifier FROM apps WHERE id = ?3)
        """, user, prefix, id
      ) { (row) throws(StoreError) in try row.integer(0) }
      // Nobody's number meanwhile, so that they don't stand in each other's way.
      try database.run("UPDATE apps SET user = -1 - id WHERE id = ?", id)
      for copy in copies {
        try database.run("DELETE FROM updates WHERE app = ?", .integer(copy))
        try database.run(
          "UPDATE OR REPLACE apps SET user = ? WHERE id = ?", .integer(stray.user), .integer(copy))
      }
      try database.run("UPDATE OR REPLACE apps SET user = ? WHERE id = ?", user, id)
    }
  }
}

extension Homes {
  /// Ends adoptions in which a process was stopped: one whose home is its new owner's by now is finished, any
  /// other one is dropped, and can be done again.
  package static func endAdoptions(in store: Store, _ registry: Registry) throws(StoreError) {
    for adoption in try registry.adoptions() {
      let home = try? store.tree.status(at: "Users/\(adoption.home)")
      if let home, home.isDirectory, home.st_uid == adoption.owner {
        // 'insula check' tells of what was set aside.
        _ = try finish(adoption, in: store, registry)
      } else {
        try registry.abandon(adoption)
      }
    }
  }

  /// Gives what was set aside of what the former owner had besides the home.
  static func finish(
    _ adoption: AdoptionIntent, in store: Store, _ registry: Registry
  ) throws(StoreError) -> [LeftBehind] {
    var aside: [LeftBehind] = []
    // What root has decided is not a matter of a home that was root's.
    let isFormer =
      adoption.former == 0 ? false : try store.ownership(of: adoption.former, registry) == .no
    if isFormer, adoption.former != adoption.owner {
      // First, since whoever is stopped does all of it again; nobody serves the store.
      try StoreLog(store).forget(adoption.former)
      aside = try Containers(store, registry).setAside(of: adoption.former)
    }
    try registry.finish(adoption, forgetsFormer: isFormer)
    return aside
  }
}
