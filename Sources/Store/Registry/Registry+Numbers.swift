// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Policy

// What was decided under the number of an account is the account's, whatever its number is by now. The
// account is known by its name, which is noted with the first decision (holders); see NumberChanges.swift for
// what a name proves.

/// What becomes of what is noted under some numbers.
struct NumberChanges: Equatable, Sendable {
  struct Move: Equatable, Sendable {
    let name: String
    let number: UInt32
    /// Whether the account's home says that it is the same person: otherwise what allows something is
    /// forgotten.
    var isProven = false
  }

  /// The accounts that have other numbers by now, by the numbers that they had.
  var moves: [UInt32: Move] = [:]
  /// Numbers that other accounts have now: those who had them are no accounts any more, or are called
  /// otherwise, or nobody knows who they were.
  ///
  /// What allows something is forgotten.
  var former: Set<UInt32> = []

  var isEmpty: Bool { moves.isEmpty && former.isEmpty }
}

extension Registry {
  /// The account that has decided something under a number, if it has another number by now.
  ///
  /// Not if the number has the home of that name in the store: whoever has it has all that is the account's.
  /// The login may be called otherwise by now, and somebody else as it was. A home elsewhere may have been
  /// away when the account got another number, and does not count.
  func changedHolder(
    of user: UInt32, in database: borrowing Database, _ accounts: LocalAccounts = .users
  ) throws(StoreError) -> NumberChanges.Move? {
    guard let noted = try Self.holder(of: user, in: database), let number = accounts.id(of: noted),
      number != user, ownerOfHome(noted) != user
    else { return nil }
    return NumberChanges.Move(name: noted, number: number)
  }

  func changedHolder(
    of user: UInt32, _ accounts: LocalAccounts
  ) throws(StoreError) -> NumberChanges.Move? {
    try use { [self] (database) throws(StoreError) in
      try changedHolder(of: user, in: database, accounts)
    }
  }

  /// Throws if what was decided under a number is another account's, which has another number by now, or is
  /// gone: it moves, or is forgotten, when the next worker starts.
  package func requireOwnDecisions(
    of user: UInt32, _ accounts: LocalAccounts = .users
  ) throws(StoreError) {
    let noted = try use { [self] (database) throws(StoreError) in
      try requireOwnDecisions(of: user, in: database, accounts)
      return try Self.holder(of: user, in: database)
    }
    if let noted, try isFormer(noted, of: user, accounts) { throw .numberOfFormer(user: user, name: noted) }
  }

  /// Whether an account that has decided something under a number is none any more, and another one has the
  /// number: what it allows is not that one's.
  func isFormer(_ noted: String, of user: UInt32, _ accounts: LocalAccounts) throws(StoreError) -> Bool {
    guard accounts.id(of: noted) == nil, accounts.name(of: user) != nil, ownerOfHome(noted) != user else {
      return false
    }
    return try allowsSomething(of: user)
  }

  static func holder(of user: UInt32, in database: borrowing Database) throws(StoreError) -> String? {
    try database.rows("SELECT name FROM holders WHERE user = ?", .integer(Int64(user))) {
      (row) throws(StoreError) in try row.text(0)
    }.first
  }

  func requireOwnDecisions(
    of user: UInt32, in database: borrowing Database, _ accounts: LocalAccounts = .users
  ) throws(StoreError) {
    guard let changed = try changedHolder(of: user, in: database, accounts) else { return }
    throw .numberOfOther(user: user, name: changed.name, number: changed.number)
  }

  /// Who has decided something under numbers, as far as that is noted.
  func holders() throws(StoreError) -> [UInt32: String] {
    let rows = try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows("SELECT user, name FROM holders") { (row) throws(StoreError) in
        (try row.user(0, path), try row.text(1))
      }
    }
    return Dictionary(rows.compactMap { row in row.0.map { ($0, row.1) } }) { first, _ in first }
  }

  /// Moves what was decided under numbers to the numbers that those who have decided it have now, all at
  /// once, and forgets what allows something where nobody knows whether it is the same person; gives what was
  /// forgotten under each number.
  ///
  /// Where an account has decided again under its new number, that counts. Who a former account was stays
  /// noted: 'insula user add' sets aside what else there is of it.
  func follow(_ changes: NumberChanges) throws(StoreError) -> [UInt32: Forgotten] {
    try changeTypes(of: nil) { (database) throws(StoreError) in
      var forgotten: [UInt32: Forgotten] = [:]
      for user in changes.former {
        forgotten[user] = try Self.forgetDecisions(
          of: user, keepingRefusals: true, withVolumes: true, in: database)
      }
      // Volumes follow a name: each has to be confirmed again.
      for (user, move) in changes.moves where !move.isProven {
        forgotten[user] = try Self.forgetDecisions(
          of: user, keepingRefusals: true, withVolumes: false, in: database)
      }
      // Nobody's numbers meanwhile: accounts may have exchanged theirs.
      for user in changes.moves.keys {
        for table in decisions {
          try database.run(
            ["UPDATE ", table.name, " SET ", table.user, " = -1 - ", table.user, " WHERE "] + table.own,
            .integer(Int64(user)))
        }
        try database.run("DELETE FROM holders WHERE user = ?", .integer(Int64(user)))
      }
      for (user, move) in changes.moves {
        let values: (Database.Value, Database.Value) = (
          .integer(-1 - Int64(user)), .integer(Int64(move.number))
        )
        try database.run(
          """
          DELETE FROM grants WHERE user = ?1 AND EXISTS (
            SELECT 1 FROM grants AS own
            WHERE own.user = ?2 AND own.identifier = grants.identifier COLLATE NOCASE
              AND own.path = grants.path AND own.ejected IS grants.ejected)
          """, values.0, values.1)
        for table in decisions {
          try database.run(
            ["UPDATE OR IGNORE ", table.name, " SET ", table.user, " = ?2 WHERE ", table.user, " = ?1"],
            values.0, values.1)
          try database.run(["DELETE FROM ", table.name, " WHERE ", table.user, " = ?"], values.0)
        }
        try database.run(
          "INSERT OR REPLACE INTO holders (user, name) VALUES (?, ?)", values.1, .text(move.name))
      }
      return forgotten
    }
  }

  /// Forgets what a user has decided, all of it or but for refusals.
  static func forgetDecisions(
    of user: UInt32, keepingRefusals: Bool, withVolumes: Bool, in database: borrowing Database
  ) throws(StoreError) -> Forgotten {
    let number = Database.Value.integer(Int64(user))
    var forgotten = Forgotten()
    try database.run(
      "DELETE FROM consents WHERE user = ?1 AND (allowed = 1 OR NOT ?2)", number,
      .integer(keepingRefusals ? 1 : 0))
    forgotten.consents = database.changes
    try database.run("DELETE FROM grants WHERE user = ?", number)
    forgotten.grants = database.changes
    try database.run("DELETE FROM openers WHERE user = ?", number)
    forgotten.openers = database.changes
    guard withVolumes else { return forgotten }
    // A home that lies elsewhere is its volume's, and counts as a home.
    try database.run("DELETE FROM volumes WHERE owner = ? AND place <> 'Users'", number)
    forgotten.volumes = database.changes
    return forgotten
  }

  /// Notes containers for other users, all at once; false, and nothing is changed, if one of these has
  /// another one of that kind and identifier.
  func give(_ moves: [(container: ContainerRecord, user: UInt32)]) throws(StoreError) -> Bool {
    do throws(StoreError) {
      try change { (database) throws(StoreError) in
        // Nobody's numbers, so that they don't stand in each other's way.
        for (container, _) in moves {
          try database.run(
            "UPDATE containers SET user = -1 - user WHERE uuid = ? AND user = ?", .text(container.uuid),
            .integer(Int64(container.user)))
          guard database.changes == 1 else { throw .appBusy(identifier: container.identifier.text) }
        }
        for (container, user) in moves {
          try database.run(
            "UPDATE OR IGNORE containers SET user = ? WHERE uuid = ?", .integer(Int64(user)),
            .text(container.uuid))
          guard database.changes == 1 else { throw .appBusy(identifier: container.identifier.text) }
        }
      }
    } catch .appBusy {
      return false
    }
    return true
  }

  /// The containers below a path that are noted for somebody else than a user.
  func containers(below path: String, notOf user: UInt32) throws(StoreError) -> [ContainerRecord] {
    try use { (database) throws(StoreError) in
      let file = database.path
      // The byte after a slash is a zero: so an index finds them.
      return try database.rows(
        """
        SELECT uuid, kind, identifier, user, path, doomed, inode, handle, created, team, root, kept
        FROM containers WHERE path > ? AND path < ? AND user <> ?
        """, .text(path + "/"), .text(path + "0"), .integer(Int64(user))
      ) { (row) throws(StoreError) in try ContainerRecord(row, file) }
    }
  }
}

/// A table of what users have decided.
private struct DecisionTable: Sendable {
  let name: StaticString
  /// The column with the user.
  let user: StaticString
  /// What of it is the user's own.
  let own: [StaticString]
}

private let decisions = [
  DecisionTable(name: "consents", user: "user", own: ["user = ?"]),
  DecisionTable(name: "grants", user: "user", own: ["user = ?"]),
  DecisionTable(name: "openers", user: "user", own: ["user = ?"]),
  // A home that lies elsewhere is its volume's.
  DecisionTable(name: "volumes", user: "owner", own: ["owner = ? AND place <> 'Users'"]),
]
