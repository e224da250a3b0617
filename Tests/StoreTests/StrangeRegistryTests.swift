// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// A store may come from somebody else, and its database with it: what that has besides, or in another way,
/// would change what is decided here.
@Suite struct StrangeRegistryTests {
  private let made: TestStore
  private let store: Store
  private var file: String { made.path + "/state/insula.db" }

  init() throws {
    made = try TestStore()
    store = try made.open()
    try open().add(.example())
  }

  private func open() throws -> Registry { try Registry(state: store.state, path: made.path + "/state") }

  private func sql(_ statements: String) throws {
    let result = try Program.run(["sqlite3", file, statements])
    try #require(result.ending == .ok && result.errors.isEmpty, "\(result)")
  }

  private static let strange = [
    (
      "CREATE TRIGGER allow AFTER INSERT ON consents BEGIN UPDATE consents SET allowed = 1; END",
      "insula has not made its trigger allow"
    ),
    ("CREATE VIEW seen AS SELECT 1", "insula has not made its view seen"),
    ("CREATE TABLE mine (a)", "insula has not made its table mine"),
    (
      "CREATE UNIQUE INDEX one ON consents (user) WHERE allowed = 0", "insula has not made its index one"
    ),
    (
      "CREATE UNIQUE INDEX one ON consents (identifier, service); PRAGMA writable_schema = ON; "
        + "UPDATE sqlite_master SET name = 'sqlite_stat9', "
        + "sql = 'CREATE UNIQUE INDEX sqlite_stat9 ON consents (identifier, service)' WHERE name = 'one'",
      "insula has not made its index sqlite_stat9"
    ),
    ("DROP INDEX removed_of_users", "its index removed_of_users is missing"),
    ("DROP TABLE holders", "its table holders is missing"),
    (
      "DROP TABLE holders; CREATE TABLE holders (user INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT '')",
      "insula has not made its table holders"
    ),
    (
      "ALTER TABLE consents ADD COLUMN more TEXT DEFAULT 'x'", "insula has not made its table consents"
    ),
  ]

  @Test(arguments: strange) func whatIsNotOursIsDamage(change: String, what: String) throws {
    try sql(change)
    let expected = StoreError.registryDamaged(path: file, what: what)
    #expect(storeError { _ = try open() } == expected)
    #expect(storeError { _ = try Registry.existing(of: store) } == expected)
    #expect(storeError { _ = try Registry.existing(of: made.open(.inspect)) } == expected)
    var check = try StoreCheck(store, repairing: false)
    try check.run()
    let found = check.findings.filter { $0.path == file }
    #expect(found.map(\.severity) == [.failure] && found.first?.problem.contains(what) == true, "\(found)")
  }

  /// What SQLite notes by itself when somebody asks it to.
  @Test func statisticsAreNoDamage() throws {
    try sql("ANALYZE; VACUUM")
    #expect(try open().apps().count == 1)
  }

  /// That of an earlier version becomes one of this version, and stays as it is if it has more than that had.
  @Test func earlierVersionsAreLookedAtToo() throws {
    let earlier = """
      DROP INDEX grants_in_ejected_homes; ALTER TABLE grants DROP COLUMN ejected;
      DROP INDEX grants_in_any_case; ALTER TABLE removed DROP COLUMN home_inode;
      ALTER TABLE removed DROP COLUMN home_handle; ALTER TABLE removed DROP COLUMN home_created;
      DELETE FROM migrations WHERE version > 19; PRAGMA user_version = 19
      """
    try sql(earlier)
    #expect(try open().apps().count == 1)
    try sql(earlier + ";" + Self.strange[0].0)
    let expected = StoreError.registryDamaged(path: file, what: Self.strange[0].1)
    #expect(storeError { _ = try Registry.existing(of: made.open(.inspect)) } == expected)
    #expect(storeError { _ = try open() } == expected)
    #expect(try Program.run(["sqlite3", file, "PRAGMA user_version"]).output == "19\n")
  }

  // MARK: Rows

  private static let index = "sqlite_autoindex_consents_1"

  /// Two refusals, by whose index the rows are looked for.
  private func refuse() throws {
    try sql(
      """
      INSERT INTO consents VALUES ('org.example.one', 501, 'photos', 'TEAM1', NULL, 0, 1);
      INSERT INTO consents VALUES ('org.example.two', 502, 'photos', 'TEAM1', NULL, 0, 1)
      """)
  }

  private func removeFromIndex() throws {
    let changed = try Program.run([
      "sqlite3", file, ".imposter \(Self.index) imposter", "DELETE FROM imposter WHERE user = 501",
    ])
    try #require(changed.ending == .ok)
  }

  private func expectDamage() throws {
    for failure in [
      storeError { _ = try Registry.existing(of: store) }, storeError { _ = try Registry(of: store) },
    ] {
      guard case .registryDamaged(file, let what) = failure else {
        Issue.record("\(String(describing: failure))")
        continue
      }
      // In SQLite's own words, which differ by its version.
      #expect(what.hasPrefix("what is in it does not fit together (") && what.contains(Self.index))
    }
    var check = try StoreCheck(store, repairing: false)
    try check.run()
    #expect(check.findings.filter { $0.path == file }.map(\.severity) == [.failure])
  }

  /// The attack: a refusal is in the table, and not in the index by which it is looked for.
  @Test func anIndexWithoutARowIsDamage() throws {
    try refuse()
    try removeFromIndex()
    try expectDamage()
  }

  /// The same by an index whose rows are in another order than they are looked for.
  @Test func rowsOutOfOrderAreDamage() throws {
    try refuse()
    let changed = try Program.run(
      ["sed", "-i", "s/org.example.one/zrg.example.one/g", file], environment: ["LC_ALL": "C"])
    try #require(changed.ending == .ok)
    try expectDamage()
  }

  /// Whoever begins to use a store looks, and nobody again while it is used.
  @Test func rowsAreLookedAtOnce() throws {
    try refuse()
    #expect(try Registry.existing(of: store) != nil)
    try removeFromIndex()
    #expect(try Registry.existing(of: store) != nil)
    #expect(try Registry.existing(of: made.open(.inspect)) != nil)
  }

  /// Triggers and views do nothing, whoever uses the database for what.
  @Test func triggersDoNothing() throws {
    let database = try Database.open("insula.db", in: store.state, path: file, patience: 1000)
    try database.run("CREATE TRIGGER t AFTER INSERT ON holders BEGIN DELETE FROM apps; END")
    try database.run("CREATE VIEW v AS SELECT * FROM apps")
    try database.run("INSERT INTO holders (user, name) VALUES (501, 'anna')")
    let copy = try Database.copy("insula.db", in: store.state, path: file, patience: 1000)
    try copy.run("INSERT INTO holders (user, name) VALUES (502, 'ben')")
    #expect(try database.count("SELECT count(*) FROM apps") == 1)
    #expect(try copy.count("SELECT count(*) FROM apps") == 1)
    #expect(storeError { _ = try database.count("SELECT count(*) FROM v") } != nil)
    #expect(storeError { _ = try copy.count("SELECT count(*) FROM v") } != nil)
    // What belongs to an app goes with it all the same.
    try database.run("INSERT INTO app_groups SELECT id, 0, 'group.a' FROM apps")
    try database.run("DELETE FROM apps")
    #expect(try database.count("SELECT count(*) FROM app_groups") == 0)
  }
}
