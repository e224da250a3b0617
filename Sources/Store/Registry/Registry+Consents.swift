// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy

/// What a user has decided about an app and a service.
package struct ConsentRecord: Equatable, Sendable {
  package let identifier: AppIdentifier
  package let user: UInt32
  /// Whose app it was decided about: another team's of the same identifier is another app.
  package let team: Team
  package let service: PrivacyService
  package let isAllowed: Bool
  /// In seconds since 1970.
  package let changed: Int64

  package init(
    _ identifier: AppIdentifier, user: UInt32, team: Team, _ service: PrivacyService, isAllowed: Bool,
    changed: Int64
  ) {
    self.identifier = identifier
    self.user = user
    self.team = team
    self.service = service
    self.isAllowed = isAllowed
    self.changed = changed
  }
}

// What users have decided about apps and what is private.

extension Registry {
  /// A user can have decided so much; more than about each service for as many apps as one can install.
  package static let consentLimitOfUser = 20_000

  /// Throws if a decision takes the place of none, and its user has as many as a user can have.
  private static func requireRoom(
    for consent: ConsentRecord, in database: borrowing Database
  ) throws(StoreError) {
    let known = try database.count(
      "SELECT count(*) FROM consents WHERE identifier = ? AND user = ? AND service = ?",
      .text(consent.identifier.text), .integer(Int64(consent.user)), .text(consent.service.rawValue))
    guard known == 0 else { return }
    let count = try database.count(
      "SELECT count(*) FROM consents WHERE user = ?", .integer(Int64(consent.user)))
    guard count < consentLimitOfUser else {
      throw .tooManyConsents(user: consent.user, limit: consentLimitOfUser)
    }
  }

  /// All decisions, or those of a user, by app and service; what another version calls a service is left out.
  package func consents(of user: UInt32? = nil) throws(StoreError) -> [ConsentRecord] {
    try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows(
        """
        SELECT identifier, user, team, root, service, allowed, changed FROM consents
        WHERE user = ?1 OR ?1 IS NULL ORDER BY identifier, user, service
        """, .optional(user)
      ) { (row) throws(StoreError) in try ConsentRecord(row, path) }.compactMap { $0 }
    }
  }

  /// The decisions of a user about an app.
  package func consents(to app: InstalledApp, of user: UInt32) throws(StoreError) -> [ConsentRecord] {
    try use { (database) throws(StoreError) in
      let path = database.path
      return try database.rows(
        """
        SELECT identifier, user, team, root, service, allowed, changed FROM consents
        WHERE identifier = ? AND user = ?
        """, .text(app.identifier.text), .integer(Int64(user))
      ) { (row) throws(StoreError) in try ConsentRecord(row, path) }.compactMap { $0 }.filter {
        $0.team == app.signer
      }
    }
  }

  /// Throws unless the app of the decision is installed for its user; with `app`, exactly that copy.
  ///
  /// The app may have been removed since its user decided. The next app of that name must not find the
  /// decision.
  private static func requireApp(
    of consent: ConsentRecord, _ app: InstalledApp?, hiding lost: InstalledApp?,
    in database: borrowing Database
  ) throws(StoreError) {
    let current = try Self.app(consent.identifier, for: consent.user, hiding: lost, in: database)
    guard let current, current.signer == consent.team, app == nil || app?.user == current.user else {
      throw .noApp(identifier: consent.identifier.text)
    }
  }

  /// Notes a decision in place of an earlier one.
  ///
  /// Throws if the app is not installed any more; `app` is the copy of which the decision was made.
  package func put(_ consent: ConsentRecord, about app: InstalledApp? = nil) throws(StoreError) {
    try Self.requireAccount(consent.user)
    let lost = try lostApp(consent.identifier, of: consent.user)
    try change { (database) throws(StoreError) in
      try Self.requireApp(of: consent, app, hiding: lost, in: database)
      try Self.requireRoom(for: consent, in: database)
      try noteHolder(of: consent.user, in: database)
      try database.run(
        """
        INSERT OR REPLACE INTO consents (identifier, user, service, team, root, allowed, changed)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """,
        .text(consent.identifier.text), .integer(Int64(consent.user)), .text(consent.service.rawValue),
        .text(consent.team.text), .optional(consent.team.root), .integer(consent.isAllowed ? 1 : 0),
        .integer(consent.changed))
    }
  }

  /// Forgets what a user has decided about an app and a service.
  package func removeConsent(
    _ identifier: AppIdentifier, of user: UInt32, _ service: PrivacyService
  ) throws(StoreError) {
    try change { (database) throws(StoreError) in
      try database.run(
        "DELETE FROM consents WHERE identifier = ? AND user = ? AND service = ?",
        .text(identifier.text), .integer(Int64(user)), .text(service.rawValue))
    }
  }

  // A refusal of everyone's app, which a user's own copy hides, counts again when that copy goes.

  /// An app is installed: what was decided about another team's of the same identifier is not for this one.
  static func keepConsents(
    onlyOf app: InstalledApp, in database: borrowing Database
  ) throws(StoreError) {
    try database.run(
      [
        """
        DELETE FROM consents WHERE identifier = ?1 AND NOT (team = ?2 AND root IS ?4)
          AND (user = ?3 OR ?3 IS NULL AND NOT EXISTS (
            SELECT 1 FROM apps WHERE apps.identifier = ?1 AND apps.user = consents.user))
          AND NOT (?3 IS NOT NULL AND
        """
      ] + isRefusalOfEveryones + [")"],
      .text(app.identifier.text), .text(app.team), .optional(app.user), .optional(app.root))
  }

  /// An app is gone, and what was decided about it.
  static func dropConsents(of app: InstalledApp, in database: borrowing Database) throws(StoreError) {
    try database.run(
      [
        """
        DELETE FROM consents WHERE identifier = ?1
          AND (user = ?2 OR ?2 IS NULL AND NOT EXISTS (
            SELECT 1 FROM apps WHERE apps.identifier = ?1 AND apps.user = consents.user))
          AND NOT (?2 IS NOT NULL AND
        """
      ] + isRefusalOfEveryones + [")"],
      .text(app.identifier.text), .optional(app.user))
  }

  private static var isRefusalOfEveryones: [StaticString] {
    [" allowed = 0 AND EXISTS (SELECT 1 FROM apps WHERE apps.identifier = ?1 AND apps.user IS NULL AND "]
      + TeamTable.consents.isOfTeam("apps.team", under: "apps.root") + [")"]
  }
}

extension ConsentRecord {
  /// Nil if the service is one of another version's.
  fileprivate init?(_ row: Columns, _ file: String) throws(StoreError) {
    guard let service = PrivacyService(rawValue: try row.text(4)) else { return nil }
    guard let user = try row.user(1, file) else {
      throw .registryDamaged(path: file, what: "a consent has no user")
    }
    self.init(
      try row.identifier(0, file), user: user, team: Team(try row.text(2), root: try row.digest(3)), service,
      isAllowed: try row.integer(5) != 0, changed: try row.integer(6))
  }
}
