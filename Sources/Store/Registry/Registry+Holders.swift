// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// Who has the numbers of users: the account that has decided something under one, and the owners of homes
// that can't be looked at while they are away.

extension Registry {
  /// Notes what the account of a number is called, before the first thing is noted for the number.
  ///
  /// Nothing is noted of accounts of a directory service, which would have to be asked.
  func noteHolder(of user: UInt32, in database: borrowing Database) throws(StoreError) {
    guard user != 0 else { return }
    let number = Database.Value.integer(Int64(user))
    // What two accounts have decided could not be told apart afterwards.
    try requireOwnDecisions(of: user, in: database)
    let nothingAllowed = Self.nothingAllowed
    // Whoever was noted before has taken back all that allows something, and may be gone. What is left
    // refuses, and may be anybody's.
    guard let name = LocalAccounts.users.name(of: user) else {
      return try database.run(["DELETE FROM holders WHERE user = ?1 AND ", nothingAllowed], number)
    }
    try database.run(
      ["INSERT OR REPLACE INTO holders (user, name) SELECT ?1, ?2 WHERE ", nothingAllowed], number,
      .text(name))
  }

  private static let nothingAllowed: StaticString = """
    NOT EXISTS (SELECT 1 FROM consents WHERE user = ?1 AND allowed = 1)
    AND NOT EXISTS (SELECT 1 FROM grants WHERE user = ?1)
    AND NOT EXISTS (SELECT 1 FROM openers WHERE user = ?1)
    AND NOT EXISTS (SELECT 1 FROM volumes WHERE owner = ?1 AND place <> 'Users')
    """

  /// Throws for a number that an account has been given besides its own.
  ///
  /// No app runs for it, and there are tens of thousands: what is limited for each user would be limited for
  /// nobody. Nobody waits here; whoever has made sure with ``requireAccount(_:waiting:)`` is right.
  package static func requireAccount(_ user: UInt32, waiting: Bool = false) throws(StoreError) {
    let users = SubordinateUsers.ofThisMachine
    let account = waiting ? users.giver(of: user) ?? user : users.account(of: user)
    guard account == user else { throw .additionalID(user: user, account: account) }
  }

  /// By whom there is something for a number that has no home, and that an account of this name has.
  ///
  /// If the account's `homeIsBack`, it is about to be adopted.
  func holder(
    of user: UInt32, named name: String, homeIsBack: Bool
  ) throws(StoreError) -> NumberHolder {
    let home = try formerHome(of: user, named: name, isBack: homeIsBack)
    return try use { (database) throws(StoreError) in
      let number = Database.Value.integer(Int64(user))
      let noted = try database.rows("SELECT name FROM holders WHERE user = ?", number) {
        (row) throws(StoreError) in try row.text(0)
      }.first
      // Several accounts can have one number.
      let isOther = noted.map { LocalAccounts.users.id(of: $0) == user } ?? false
      return NumberHolder(of: name, noted: noted, isNotedThere: isOther, home: home)
    }
  }

  /// What is known of the home that a number had, by what is noted of things in it.
  private func formerHome(
    of user: UInt32, named name: String, isBack: Bool
  ) throws(StoreError) -> FormerHome {
    let ejected = try ejectedHomes().filter { $0.name.elementsEqual(name.utf8) }
    return try use { (database) throws(StoreError) in
      let isUsed = try Self.countThings(of: user, below: "Users/\(name)/", in: database) > 0
      let isEjected = ejected.contains { $0.owner.map { $0 == user } ?? isUsed }
      if isEjected || isBack && isUsed { return .accounts }
      return try Self.countThings(of: user, below: "", in: database) > 0 ? .gone : .never
    }
  }

  /// Whether something is noted for a number in a home of that name.
  func hasThings(of user: UInt32, inHome name: [UInt8]) throws(StoreError) -> Bool {
    let prefix = "Users/\(String(decoding: name, as: UTF8.self))/"
    return try use { (database) throws(StoreError) in
      try Self.countThings(of: user, below: prefix, in: database) > 0
    }
  }

  private static func countThings(
    of user: UInt32, below path: String, in database: borrowing Database
  ) throws(StoreError) -> Int64 {
    try database.count(
      """
      SELECT (SELECT count(*) FROM apps WHERE user = ?1 AND substr(path, 1, length(?2)) = ?2)
        + (SELECT count(*) FROM containers WHERE user = ?1 AND substr(path, 1, length(?2)) = ?2)
        + (SELECT count(*) FROM removed
           WHERE user = ?1 AND deleting = 0 AND substr(path, 1, length(?2)) = ?2)
      """, .integer(Int64(user)), .text(path))
  }

  /// Whether there is something for a number that would be forgotten.
  func hasDecisions(of user: UInt32) throws(StoreError) -> Bool {
    try use { (database) throws(StoreError) in
      try Self.countDecisions(of: user, withRefusals: true, in: database) > 0
    }
  }

  /// Whether there is more than refusals.
  func allowsSomething(of user: UInt32) throws(StoreError) -> Bool {
    try use { (database) throws(StoreError) in
      try Self.countDecisions(of: user, withRefusals: false, in: database) > 0
    }
  }

  private static func countDecisions(
    of user: UInt32, withRefusals: Bool, in database: borrowing Database
  ) throws(StoreError) -> Int64 {
    try database.count(
      """
      SELECT (SELECT count(*) FROM consents WHERE user = ?1 AND allowed >= ?2)
        + (SELECT count(*) FROM grants WHERE user = ?1)
        + (SELECT count(*) FROM openers WHERE user = ?1)
        + (SELECT count(*) FROM volumes WHERE owner = ?1 AND place <> 'Users')
      """, .integer(Int64(user)), .integer(withRefusals ? 0 : 1))
  }

  /// For whom root has added a home that lies elsewhere; nil where an earlier version did not note that.
  package func owner(ofHome volume: Int64) throws(StoreError) -> UInt32? {
    try use { (database) throws(StoreError) in try Self.owner(ofHome: volume, in: database) }
  }

  private static func owner(
    ofHome volume: Int64, in database: borrowing Database
  ) throws(StoreError) -> UInt32? {
    let path = database.path
    return try database.rows("SELECT owner FROM home_owners WHERE volume = ?", .integer(volume)) {
      (row) throws(StoreError) in try owner(row, 0, path)
    }.first
  }

  /// Notes whose a home is that lies elsewhere, when it is there for the first time.
  package func note(owner: UInt32, ofHome volume: Int64) throws(StoreError) {
    let values: [Database.Value] = [.integer(volume), .integer(Int64(owner))]
    let isKnown = try use { (database) throws(StoreError) in
      try database.count(
        "SELECT count(*) FROM home_owners WHERE volume = ? AND owner = ?", values[0], values[1]) > 0
    }
    if isKnown { return }
    try changeOwner(ofHome: volume) { (database) throws(StoreError) in
      try database.run(
        """
        INSERT OR REPLACE INTO home_owners (volume, owner)
        SELECT ?1, ?2 WHERE ?1 IN (SELECT id FROM volumes)
        """, values[0], values[1])
      // If it was ejected, it has come back; another owner's home there is another one.
      try database.run(
        """
        DELETE FROM ejected_homes WHERE (owner IS NULL OR owner = ?2) AND EXISTS (
          SELECT 1 FROM volumes
          WHERE id = ?1 AND volumes.name = ejected_homes.name AND volumes.path = ejected_homes.path)
        """, values[0], values[1])
    }
  }

  /// Forgets for whom a home that lies elsewhere was added, which root confirms on this machine.
  package func forgetOwner(ofHome volume: Int64) throws(StoreError) {
    try changeOwner(ofHome: volume) { (database) throws(StoreError) in
      try database.run("DELETE FROM home_owners WHERE volume = ?", .integer(volume))
    }
  }

  /// What was removed from a home stays known to be from it.
  private func changeOwner(
    ofHome id: Int64, _ body: @Sendable (borrowing Database) throws(StoreError) -> Void
  ) throws(StoreError) {
    let volume = try volumes().first { $0.id == id && $0.place == .users }
    try change { (database) throws(StoreError) in
      let before = try Self.owner(ofHome: id, in: database)
      try body(database)
      guard let volume else { return }
      let now = try Self.owner(ofHome: id, in: database)
      try database.run(
        "UPDATE removed SET home_handle = ?2 WHERE home_inode = 0 AND home_handle = ?1",
        .bytes(ObjectIdentity(ofHome: volume, of: before).handle),
        .bytes(ObjectIdentity(ofHome: volume, of: now).handle))
    }
  }

  /// What the home of a volume is.
  func object(ofHome volume: VolumeRecord) throws(StoreError) -> ObjectIdentity {
    ObjectIdentity(ofHome: volume, of: try owner(ofHome: volume.id))
  }

  /// The owners of homes that lie elsewhere, by the names of the homes, as far as they are known.
  package func ownersOfHomesElsewhere() throws(StoreError) -> [[UInt8]: UInt32] {
    let rows = try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows(
        "SELECT name, home_owners.owner FROM home_owners JOIN volumes ON id = volume WHERE place = 'Users'"
      ) { (row) throws(StoreError) in (name: try row.bytes(0), owner: try Self.owner(row, 1, path)) }
    }
    return Dictionary(rows.map { ($0.name, $0.owner) }) { first, _ in first }
  }

  private static func owner(_ row: Columns, _ index: Int32, _ path: String) throws(StoreError) -> UInt32 {
    guard let owner = try row.user(index, path) else {
      throw .registryDamaged(path: path, what: "a home has no owner")
    }
    return owner
  }
}
