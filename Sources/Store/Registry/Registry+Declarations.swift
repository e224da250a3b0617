// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy

/// What an app says of types and documents, with whose app it is.
package struct AppDocuments: Codable, Equatable, Sendable {
  package let identifier: String
  package let name: String
  /// Its bundle, below the root of the tree.
  package let path: String
  /// The text of ``AppDeclarations``.
  package let declarations: String

  package init(identifier: String, name: String, path: String, declarations: String) {
    self.identifier = identifier
    self.name = name
    self.path = path
    self.declarations = declarations
  }
}

// What apps say of types and documents, and what users have chosen.

extension Registry {
  /// How much counts of one user's own apps, and of the machine's; what comes later is passed over.
  ///
  /// One user's apps are not to fill the memory of all.
  package static let declarationBytes = (own: 1 << 20, machine: 8 << 20)
  /// How many types a user may choose apps for.
  static let mostChoices = 1000

  /// What the machine's apps say or, with a user, that one's own: the first that was there first.
  package func documents(of user: UInt32?) throws(StoreError) -> [AppDocuments] {
    let most = user == nil ? Self.declarationBytes.machine : Self.declarationBytes.own
    return try use { (database) throws(StoreError) in
      var room = most
      return try database.rows(
        """
        SELECT identifier, name, path, text FROM apps JOIN declarations ON app = id WHERE user IS ?
        ORDER BY id
        """, .optional(user)
      ) { (row) throws(StoreError) -> AppDocuments? in
        let text = try row.text(3)
        room -= text.utf8.count
        guard room >= 0 else { return nil }
        return AppDocuments(
          identifier: try row.text(0), name: try row.text(1), path: try row.text(2), declarations: text)
      }.compactMap(\.self)
    }
  }

  /// What all apps say that a user has: the machine's, unless the user has an own one of that identifier, and
  /// the user's own.
  package func documents(for user: UInt32) throws(StoreError) -> [AppDocuments] {
    let own = try documents(of: user)
    let identifiers = Set(own.map { $0.identifier.lowercased() })
    return try documents(of: nil).filter { !identifiers.contains($0.identifier.lowercased()) } + own
  }

  /// Notes what an app says, unless it is another one by now.
  package func note(_ declarations: AppDeclarations, of app: InstalledApp) throws(StoreError) {
    let text = declarations.text
    try changeTypes { (database) throws(StoreError) in
      try database.run(
        """
        INSERT OR REPLACE INTO declarations (app, text)
        SELECT id, ? FROM apps WHERE identifier = ? AND user IS ? AND seal = ?
        """, .text(text), .text(app.identifier.text), .optional(app.user), .bytes(app.seal))
    }
  }

  /// The paths of apps of which it is not noted what they say.
  package func undeclaredApps() throws(StoreError) -> Set<String> {
    try use { (database) throws(StoreError) in
      Set(
        try database.rows("SELECT path FROM apps WHERE id NOT IN (SELECT app FROM declarations)") {
          (row) throws(StoreError) in try row.text(0)
        })
    }
  }

  // MARK: Choices

  /// The apps that a user has chosen, by the types; those that are there, and are still of the same team.
  package func openers(of user: UInt32) throws(StoreError) -> [String: String] {
    try use { (database) throws(StoreError) in
      let rows = try database.rows(
        """
        SELECT type, openers.identifier FROM openers JOIN apps ON apps.identifier = openers.identifier
          AND apps.team = openers.team AND apps.root IS openers.root
        WHERE openers.user = ?1 AND (apps.user = ?1 OR apps.user IS NULL AND NOT EXISTS (
          SELECT 1 FROM apps AS own WHERE own.identifier = openers.identifier AND own.user = ?1))
        """, .integer(Int64(user))
      ) { (row) throws(StoreError) in (try row.text(0), try row.text(1)) }
      return Dictionary(rows) { first, _ in first }
    }
  }

  /// Notes which app a user has chosen for a type; with none, that it is open again.
  package func choose(_ app: InstalledApp?, for type: String, of user: UInt32) throws(StoreError) {
    try changeTypes { (database) throws(StoreError) in
      guard let app else {
        return try database.run(
          "DELETE FROM openers WHERE user = ? AND type = ?", .integer(Int64(user)), .text(type))
      }
      let count = try database.rows(
        "SELECT count(*) FROM openers WHERE user = ? AND type <> ?", .integer(Int64(user)), .text(type)
      ) { (row) throws(StoreError) in try row.integer(0) }.first
      guard (count ?? 0) < Self.mostChoices else { throw .tooManyChoices(limit: Self.mostChoices) }
      try database.run(
        "INSERT OR REPLACE INTO openers (user, type, identifier, team, root) VALUES (?, ?, ?, ?, ?)",
        .integer(Int64(user)), .text(type), .text(app.identifier.text), .text(app.team), .optional(app.root))
    }
  }
}
