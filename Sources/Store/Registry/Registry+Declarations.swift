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
  /// How much counts of one user's own apps, and of the machine's; what comes later is not kept.
  ///
  /// One user's apps are to fill neither the memory of all nor the registry, and what they declare is read
  /// within milliseconds.
  package static let declarationBytes = (own: 256 << 10, machine: 8 << 20)
  /// How many apps count.
  static let mostDeclaring = 1000
  /// How many types a user may choose apps for.
  static let mostChoices = 1000
  /// What begins the text of an app for whose declarations there was no room: no version reads a line of it.
  private static let cut = "-"

  /// What the machine's apps say or, with a user, that one's own: the first that was there first.
  package func documents(of user: UInt32?) throws(StoreError) -> [AppDocuments] {
    let most = Self.most(of: user)
    return try use { (database) throws(StoreError) in
      var room = most
      return try database.rows(
        """
        SELECT identifier, name, path, text FROM apps JOIN declarations ON app = id WHERE user IS ?
        ORDER BY id LIMIT ?
        """, .optional(user), .integer(Int64(Self.mostDeclaring))
      ) { (row) throws(StoreError) -> AppDocuments? in
        let text = try row.text(3)
        room -= text.utf8.count
        guard room >= 0 else { return nil }
        return AppDocuments(
          identifier: try row.text(0), name: try row.text(1), path: try row.text(2), declarations: text)
      }.compactMap(\.self)
    }
  }

  private static func most(of user: UInt32?) -> Int {
    user == nil ? declarationBytes.machine : declarationBytes.own
  }

  /// What one app says that is there for a user; nil if it is not there, or nothing is known of it.
  package func declarations(
    of app: AppIdentifier, for user: UInt32
  ) throws(StoreError) -> AppDeclarations? {
    try use { (database) throws(StoreError) in
      try database.rows(
        """
        SELECT text FROM apps LEFT JOIN declarations ON app = id
        WHERE identifier = ? AND (user = ? OR user IS NULL) ORDER BY user IS NULL LIMIT 1
        """, .text(app.text), .integer(Int64(user))
      ) { (row) throws(StoreError) in row.isNull(0) ? nil : AppDeclarations(text: try row.text(0)) }
      .first ?? nil
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
  ///
  /// Where those that were there first leave no room, only how it uses documents is kept.
  package func note(_ declarations: AppDeclarations, of app: InstalledApp) throws(StoreError) {
    let text = declarations.text
    var cut = declarations
    (cut.exported, cut.imported, cut.claims) = ([], [], [])
    let short = "\(Self.cut)\n\(cut.text)"
    try changeTypes(of: app.user) { (database) throws(StoreError) in
      let used =
        try database.rows(
          """
          SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM apps JOIN declarations ON app = id
          WHERE user IS ? AND identifier <> ?
          """, .optional(app.user), .text(app.identifier.text)
        ) { (row) throws(StoreError) in try row.integer(0) }.first ?? 0
      let fits = Int(used) + text.utf8.count <= Self.most(of: app.user)
      try database.run(
        """
        INSERT OR REPLACE INTO declarations (app, text)
        SELECT id, ? FROM apps WHERE identifier = ? AND user IS ? AND seal = ?
        """, .text(fits ? text : short), .text(app.identifier.text), .optional(app.user), .bytes(app.seal))
    }
  }

  /// Has those asked again for whose declarations there was no room, now that there may be some.
  static func askAgain(of user: UInt32?, in database: borrowing Database) throws(StoreError) {
    try database.run(
      "DELETE FROM declarations WHERE text LIKE ? AND app IN (SELECT id FROM apps WHERE user IS ?)",
      .text("\(cut)%"), .optional(user))
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
    if app != nil { try Self.requireAccount(user) }
    try change { (database) throws(StoreError) in
      guard let app else {
        return try database.run(
          "DELETE FROM openers WHERE user = ? AND type = ?", .integer(Int64(user)), .text(type))
      }
      let count = try database.count(
        "SELECT count(*) FROM openers WHERE user = ? AND type <> ?", .integer(Int64(user)), .text(type))
      guard count < Self.mostChoices else { throw .tooManyChoices(limit: Self.mostChoices) }
      try noteHolder(of: user, in: database)
      try database.run(
        "INSERT OR REPLACE INTO openers (user, type, identifier, team, root) VALUES (?, ?, ?, ?, ?)",
        .integer(Int64(user)), .text(type), .text(app.identifier.text), .text(app.team), .optional(app.root))
    }
  }
}
