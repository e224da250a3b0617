// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// What lies in a home is the home's owner's. Apps are noted by a user's number and a path, and the two can
// part without us: an account gets another number, or a home goes and another account gets one of its name.

extension Registry {
  /// The apps below a path that are noted for somebody else than a user.
  package func apps(below path: String, notOf user: UInt32) throws(StoreError) -> [InstalledApp] {
    let prefix = path + "/"
    let paths = try use { (database) throws(StoreError) in
      // The byte after a slash is a zero: so an index finds them.
      try database.rows(
        "SELECT path FROM apps WHERE path > ? AND path < ? AND user <> ?", .text(prefix), .text(path + "0"),
        .integer(Int64(user))
      ) { (row) throws(StoreError) in try row.text(0) }
    }
    if paths.isEmpty { return [] }
    return try apps().filter { $0.path.begins(with: prefix) && $0.user.map { $0 != user } ?? false }
  }

  /// Notes an app for the user in whose home its bundle is; whether it is noted so now.
  ///
  /// It is not if the user has another copy, in another home, or if the app is not noted as it was.
  package func give(_ app: InstalledApp, to user: UInt32) throws(StoreError) -> Bool {
    try give([(app, user)])
  }

  /// The same for several at once, which may make room for each other; all of them or none.
  ///
  /// Updates that wait for them go: those who asked for them had numbers that are others' by now.
  package func give(_ moves: [(app: InstalledApp, user: UInt32)]) throws(StoreError) -> Bool {
    do throws(StoreError) {
      try changeTypes(of: nil) { (database) throws(StoreError) in
        for (app, _) in moves {
          try database.run(
            "DELETE FROM updates WHERE app IN (SELECT id FROM apps WHERE path = ? AND user = ?)",
            .text(app.path), .optional(app.user))
          // Nobody's number, so that they don't stand in each other's way.
          try database.run(
            "UPDATE apps SET user = -1 - id WHERE path = ? AND user = ? AND identifier = ?", .text(app.path),
            .optional(app.user), .text(app.identifier.text))
          guard database.changes == 1 else { throw .appBusy(identifier: app.identifier.text) }
        }
        for (app, user) in moves {
          guard try Self.find(app.identifier, of: user, in: database) == nil else {
            throw .appBusy(identifier: app.identifier.text)
          }
          try database.run(
            "UPDATE apps SET user = ? WHERE path = ? AND user = -1 - id", .integer(Int64(user)),
            .text(app.path))
        }
        for (app, _) in moves { try dropDecisions(about: app, in: database) }
      }
    } catch .appBusy {
      return false
    }
    return true
  }

  /// Forgets an app of a user's whose bundle is gone, and nothing else of the user's, nor what is noted at
  /// its path by now.
  package func forgetStray(_ app: InstalledApp) throws(StoreError) {
    try changeTypes(of: nil) { (database) throws(StoreError) in
      try database.run(
        "DELETE FROM apps WHERE path = ? AND user = ? AND identifier = ?", .text(app.path),
        .optional(app.user), .text(app.identifier.text))
      try dropDecisions(about: app, in: database)
    }
  }

  /// What was decided about an app under a number that has lost it ends with it, unless the number has a copy
  /// all the same, or it is about to follow the account that has decided it.
  private func dropDecisions(
    about app: InstalledApp, in database: borrowing Database
  ) throws(StoreError) {
    guard let user = app.user, try Self.find(app.identifier, of: user, in: database) == nil,
      try changedHolder(of: user, in: database) == nil
    else { return }
    try Self.dropGrants(of: app, in: database)
    try Self.dropConsents(of: app, in: database)
  }
}
