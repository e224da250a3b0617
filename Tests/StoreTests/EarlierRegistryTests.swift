// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// A daemon of an earlier version may use the registry, and its next worker must be able to read it: whoever
/// only looks leaves it as it is.
@Suite struct EarlierRegistryTests {
  private let made: TestStore
  private var file: String { made.path + "/state/insula.db" }

  init() throws { made = try TestStore() }

  private func sql(_ statements: String) throws -> String {
    let result = try Program.run(["sqlite3", file, statements])
    try #require(result.status == 0, "\(result.errors)")
    return result.output
  }

  private func sum() throws -> String { try Program.run(["sha256sum", file]).output }

  /// Makes what a version had, by the statements of that version; with an app of the machine's and one of a
  /// user's.
  private func make(_ version: Int) throws {
    try made.temporary.write("", to: "store/state/insula.db")
    for (step, number) in zip(RegistrySchema.steps, 1...version) {
      _ = try sql(step.statements.map(\.description).joined(separator: ";\n"))
      _ = try sql("INSERT INTO migrations VALUES (\(number), '\(step.name)')")
    }
    for (user, path) in [("NULL", "Applications/Editor.app"), ("501", "Users/anna/Applications/Editor.app")] {
      _ = try sql(
        """
        INSERT INTO apps
          (identifier, user, name, executable, version, short_version, team, path, seal, installed)
        VALUES ('com.example.editor', \(user), 'Editor', 'Editor', '7', '1.2', 'TEAM', '\(path)', x'00', 1)
        """)
    }
    _ = try sql(
      """
      INSERT INTO containers (uuid, kind, identifier, user, path)
      VALUES ('A', 'data', 'com.example.editor', 501, 'Users/anna/Library/Containers/com.example.editor')
      """)
  }

  private func isThere(_ name: String) -> Bool {
    made.temporary.text(of: "store/state/\(name)") != nil
  }

  @Test(arguments: 1..<RegistrySchema.version) func lookingChangesNothing(version: Int) throws {
    try make(version)
    // The daemon's.
    let serving = try made.open()
    let before = try sum()
    let looking = try made.open(.inspect)
    let registry = try #require(try Registry.existing(of: looking))
    #expect(try registry.apps().map(\.user) == [nil, 501])
    #expect(try registry.containers().map(\.user) == [501])
    #expect(try registry.problems() == [])
    #expect(try registry.intents().isEmpty && registry.removedContainers().isEmpty)
    var check = try StoreCheck(looking, repairing: false)
    try check.run()
    #expect(!check.findings.contains { $0.problem.contains("damaged") })
    #expect(check.findings.count { $0.problem.contains("is missing: the bundle") } == 2)
    // What is changed in a copy would be lost.
    #expect(storeError { _ = try registry.pin("TEAM", to: [1]) } == .registryOlder(path: file))
    #expect(storeError { _ = try Registry(of: looking) } == .registryOlder(path: file))
    #expect(try sum() == before && !isThere("insula.db-journal"))
    #expect(try sql("PRAGMA user_version") == "\(version)\n")
    // Whoever has the store alone brings it up to date, and then all look at the same.
    #expect(try Registry.existing(of: serving)?.apps().map(\.user) == [nil, 501])
    #expect(try sql("PRAGMA user_version") == "\(RegistrySchema.version)\n")
    #expect(try Registry.existing(of: looking)?.apps().count == 2)
    #expect(try Registry(of: looking).pin("TEAM", to: [1]) == nil)
    #expect(try Registry.existing(of: serving)?.root(of: "TEAM") == [1])
  }

  /// So does a daemon that serves a store for reading alone.
  @Test func readingAloneChangesNothing() throws {
    try make(RegistrySchema.version - 1)
    let before = try sum()
    let (one, other) = (try made.open(.exclusiveReadOnly), try made.open(.exclusiveReadOnly))
    for store in [one, other] {
      #expect(try Registry.existing(of: store)?.apps().map(\.user) == [nil, 501])
    }
    #expect(try sum() == before)
  }

  /// A daemon may be in the middle of a change: what it has not committed is not looked at.
  @Test func lookingWaitsForWhoeverWrites() throws {
    try make(RegistrySchema.version - 1)
    let serving = try made.open()
    let state = serving.state
    let database = try Database.open("insula.db", in: state, path: file, patience: 1000)
    try database.run("BEGIN EXCLUSIVE")
    try database.run("DELETE FROM apps")
    let looking = try made.open(.inspect)
    #expect(
      storeError {
        _ = try Registry.existing(state: looking.state, path: made.path + "/state", patience: 100)
      }
        == .registryBusy(path: file))
    try database.run("ROLLBACK")
    #expect(try Registry.existing(of: looking)?.apps().count == 2)
  }
}
