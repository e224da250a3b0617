// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

// Users are numbers, and a number is given to somebody else once its account is gone.

extension Registry {
  /// What was forgotten of a user.
  package struct Forgotten: Equatable, Sendable {
    package var consents = 0
    package var grants = 0
    package var openers = 0
    package var volumes = 0

    package var isNothing: Bool { self == Forgotten() }
  }

  /// Forgets all that counts for a user: whoever gets the number next begins with nothing.
  func forget(user: UInt32) throws(StoreError) -> Forgotten {
    try changeTypes(of: user) { (database) throws(StoreError) in try Self.forget(user: user, in: database) }
  }

  /// The same as a part of a change.
  ///
  /// Their homes are gone, so nobody may restore what was removed there: it is deleted as if its time was
  /// over. What is noted of apps and containers is about directories that are gone; should a home come back,
  /// its containers say themselves whose team's they are.
  static func forget(user: UInt32, in database: borrowing Database) throws(StoreError) -> Forgotten {
    let number = Database.Value.integer(Int64(user))
    var forgotten = Forgotten()
    try database.run("DELETE FROM consents WHERE user = ?", number)
    forgotten.consents = database.changes
    try database.run("DELETE FROM grants WHERE user = ?", number)
    forgotten.grants = database.changes
    try database.run("DELETE FROM openers WHERE user = ?", number)
    forgotten.openers = database.changes
    // A home that lies elsewhere is its volume's, and counts as a home.
    try database.run("DELETE FROM volumes WHERE owner = ? AND place <> 'Users'", number)
    forgotten.volumes = database.changes
    for noted in try intents(in: database) where noted.intent.app.user == user && !noted.isLive {
      try database.run("DELETE FROM intents WHERE id = ?", .integer(noted.number))
    }
    try database.run("DELETE FROM apps WHERE user = ?", number)
    try database.run("DELETE FROM containers WHERE user = ?", number)
    try database.run("UPDATE removed SET deleting = 1 WHERE user = ?", number)
    return forgotten
  }
}

extension Store {
  /// Forgets what counts for a user without a home; nil, and nothing is forgotten, while there is one.
  package func forget(_ user: UInt32, in registry: Registry) throws(StoreError) -> Registry.Forgotten? {
    guard try !hasHome(user) else { return nil }
    return try registry.forget(user: user)
  }

  /// Whether a user has a home: in the store, or perhaps on a volume that is not there now.
  func hasHome(_ user: UInt32) throws(StoreError) -> Bool {
    let homes = try Homes(tree: tree, path: path + "/tree", mode: description.mode)
    return try homes.list().contains { home in
      // Of one that is away only the name is known, which is that of its account.
      home.isAway ? Account.named(home.name)?.uid == user : home.uid == user
    }
  }
}
