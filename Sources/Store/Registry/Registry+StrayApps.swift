// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

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
  /// It is not if the user has another copy, in another home.
  package func give(_ app: InstalledApp, to user: UInt32) throws(StoreError) -> Bool {
    try changeTypes(of: nil) { (database) throws(StoreError) in
      guard try Self.find(app.identifier, of: user, in: database) == nil else { return false }
      try database.run(
        "UPDATE apps SET user = ?1 WHERE path = ?2 AND user IS NOT NULL", .integer(Int64(user)),
        .text(app.path))
      return database.changes == 1
    }
  }

  /// Forgets an app of a user's whose bundle is gone, and nothing else of the user's.
  package func forgetStray(_ app: InstalledApp) throws(StoreError) {
    try changeTypes(of: nil) { (database) throws(StoreError) in
      try database.run("DELETE FROM apps WHERE path = ? AND user IS NOT NULL", .text(app.path))
    }
  }
}
