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

    package var isNothing: Bool { consents == 0 && grants == 0 && openers == 0 }
  }

  /// Forgets what a user has decided: whoever gets the number next decides anew.
  ///
  /// `home` is one that is gone, with the containers in it. `held` are the directories of removed containers
  /// of theirs, which nobody may restore any more; they are deleted as if their time was over.
  func forget(user: UInt32, home: String?, held: [String]) throws(StoreError) -> Forgotten {
    try change { (database) throws(StoreError) in
      let number = Database.Value.integer(Int64(user))
      var forgotten = Forgotten()
      try database.run("DELETE FROM consents WHERE user = ?", number)
      forgotten.consents = database.changes
      try database.run("DELETE FROM grants WHERE user = ?", number)
      forgotten.grants = database.changes
      try database.run("DELETE FROM openers WHERE user = ?", number)
      forgotten.openers = database.changes
      if let home {
        try database.run(
          "DELETE FROM containers WHERE user = ?1 AND substr(path, 1, length(?2)) = ?2", number,
          .text("Users/\(home)/"))
      }
      for uuid in held {
        try database.run("UPDATE removed SET deleting = 1 WHERE user = ? AND uuid = ?", number, .text(uuid))
      }
      return forgotten
    }
  }
}

extension Store {
  /// Forgets what a user without a home has decided; nil, and nothing is forgotten, while there is one.
  ///
  /// `home` is one that is gone, with the containers in it.
  package func forget(
    _ user: UInt32, home: String? = nil, in registry: Registry
  ) throws(StoreError) -> Registry.Forgotten? {
    guard try !hasHome(user) else { return nil }
    var held: [String] = []
    // What lies beside a home that was taken out of the tree goes or comes back with that.
    if let directory = try? state.openDirectory(StoreLayout.removedName) {
      held = try registry.removedContainers(of: user).map(\.container.uuid).filter { directory.fd.has($0) }
    }
    return try registry.forget(user: user, home: home, held: held)
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
