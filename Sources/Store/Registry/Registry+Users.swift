// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

// What is forgotten of users who are gone; see FormerUser.

extension Registry {
  /// What was forgotten of a user.
  package struct Forgotten: Equatable, Sendable {
    package var consents = 0
    package var grants = 0
    package var openers = 0
    package var volumes = 0

    package var words: String {
      [
        "\(consents) consents", "\(grants) grants", "\(openers) apps chosen for documents",
        "\(volumes) volumes",
      ].joined(separator: ", ")
    }
  }

  /// Forgets all that counts for a user: whoever gets the number next begins with nothing.
  package func forget(user: UInt32) throws(StoreError) -> Forgotten {
    try changeTypes(of: user) { (database) throws(StoreError) in try Self.forget(user: user, in: database) }
  }

  /// The same as a part of a change.
  ///
  /// Their homes are gone, so nobody may restore what was removed there: it is deleted as if its time was
  /// over. What is known to be from a certain home has gone with that one, or waits for it. What is noted of
  /// apps and containers is about directories that are gone; should a home come back, its containers say
  /// themselves whose team's they are.
  static func forget(user: UInt32, in database: borrowing Database) throws(StoreError) -> Forgotten {
    let number = Database.Value.integer(Int64(user))
    let forgotten = try forgetDecisions(of: user, keepingRefusals: false, withVolumes: true, in: database)
    for noted in try intents(in: database) where noted.intent.app.user == user && !noted.isLive {
      try database.run("DELETE FROM intents WHERE id = ?", .integer(noted.number))
    }
    try database.run("DELETE FROM apps WHERE user = ?", number)
    try database.run("DELETE FROM containers WHERE user = ?", number)
    try database.run("UPDATE removed SET deleting = 1 WHERE user = ? AND home_inode IS NULL", number)
    try database.run("DELETE FROM holders WHERE user = ?", number)
    try database.run("DELETE FROM ejected_homes WHERE owner = ?", number)
    return forgotten
  }

  /// Forgets what is noted of things in a home of a user's that is gone, and nothing that they have in
  /// another one.
  ///
  /// Removed containers that are known to be from that home were deleted before it went. What others have
  /// granted their apps there goes too: the next home of that name is somebody else's.
  func forget(home name: String, of user: UInt32) throws(StoreError) {
    let prefix = "Users/\(name)/"
    let values: [Database.Value] = [.integer(Int64(user)), .text(prefix)]
    try changeTypes(of: user) { (database) throws(StoreError) in
      for noted in try Self.intents(in: database)
      where noted.intent.app.user == user && !noted.isLive
        && noted.intent.app.path.utf8.starts(with: prefix.utf8)
      {
        try database.run("DELETE FROM intents WHERE id = ?", .integer(noted.number))
      }
      try database.run(
        "DELETE FROM apps WHERE user = ?1 AND substr(path, 1, length(?2)) = ?2", values[0], values[1])
      try database.run(
        "DELETE FROM containers WHERE user = ?1 AND substr(path, 1, length(?2)) = ?2", values[0], values[1])
      try database.run(
        """
        UPDATE removed SET deleting = 1
        WHERE user = ?1 AND home_inode IS NULL AND substr(path, 1, length(?2)) = ?2
        """, values[0], values[1])
      try Self.dropGrants(below: prefix, in: database)
    }
  }

  /// The same where another home of that name was ejected: what is noted of things there is that one's, but
  /// for removed containers that are held here.
  func forget(
    home name: String, of user: UInt32, whereRemovedAre isHeld: (RemovedContainer) -> Bool
  ) throws(StoreError) {
    let prefix = "Users/\(name)/"
    for removed in try removedContainers(of: user)
    where removed.home == nil && removed.container.path.utf8.starts(with: prefix.utf8) && isHeld(removed) {
      _ = try noteDeletion(of: removed)
    }
    try change { (database) throws(StoreError) in
      try Self.forgetObjects(inHome: name, of: user, in: database)
      try Self.dropGrants(inHome: name, besidesEjectedOneIn: database)
    }
  }
}
