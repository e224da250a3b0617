// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

@Suite struct GrantRegistryTests {
  private let made: TestStore
  private let registry: Registry

  init() throws {
    made = try TestStore()
    let store = try made.open()
    registry = try Registry(state: store.state, path: made.path + "/state")
  }

  private func grant(
    _ path: String, to identifier: String = "com.example.editor", user: UInt32 = 501,
    team: String = "ABCDE12345"
  ) throws -> GrantRecord {
    GrantRecord(
      identifier: try #require(AppIdentifier(identifier)), user: user, team: Team(team, root: nil),
      path: GrantPath.names(Array(path.utf8)), isWritable: true, isDirectory: false,
      identity: ObjectIdentity(inode: .max, handle: [1, 2, 3], created: -5), granted: 7)
  }

  @Test func grantComesBackAsItWent() throws {
    var record = try grant("Users/ada/Documents/a")
    record.path.append([0xff, 0x0a, 0x27])
    let noted = try registry.add(record)
    record.id = noted.id
    #expect(noted == record)
    #expect(try registry.grants() == [record])
    record.path = GrantPath.names(Array("Users/ada/b".utf8))
    record.isWritable = false
    record.identity = ObjectIdentity(inode: 4, handle: [], created: 1)
    try registry.update([record])
    #expect(try registry.grants() == [record])
    try registry.removeGrants([record.id, 99])
    #expect(try registry.grants().isEmpty)
    // What is gone stays so, and its number is nobody else's.
    try registry.update([record])
    #expect(try registry.grants().isEmpty)
    #expect(try registry.add(grant("Users/ada/c")).id > record.id)
  }

  @Test func goesWithItsApp() throws {
    let everyones = try InstalledApp.example()
    try registry.add(everyones)
    try registry.add(.example(user: 502, name: "Own"))
    for user in [501, 502] as [UInt32] { _ = try registry.add(grant("Users/Shared/x", user: user)) }
    _ = try registry.add(grant("Users/Shared/x", to: "com.example.other"))
    func users() throws -> [UInt32] {
      try registry.grants().filter { $0.identifier == everyones.identifier }.map(\.user)
    }
    // Who has one of their own was given that one something.
    _ = try registry.remove(everyones.identifier, of: nil, keepingData: true)
    #expect(try users() == [502])
    _ = try registry.remove(everyones.identifier, of: 502, keepingData: false)
    #expect(try users() == [] && registry.grants().count == 1)
  }

  @Test func anotherTeamsAppIsAnotherApp() throws {
    var app = try InstalledApp.example()
    try registry.add(app)
    _ = try registry.add(grant("Users/Shared/x", team: app.team))
    try registry.update(app)
    #expect(try registry.grants().count == 1)
    app.team = "OTHER67890"
    try registry.update(app)
    #expect(try registry.grants().isEmpty)
    _ = try registry.add(grant("Users/Shared/x", team: app.team))
    try registry.add(.example(user: 501, name: "Own"))
    #expect(try registry.grants().isEmpty)
  }

  /// Notes many grants at once.
  private func fill(_ identifier: String, _ user: UInt32, _ count: Int) throws {
    let sql = """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
      INSERT INTO grants (identifier, user, team, path, writable, directory, inode, handle, created, granted)
      SELECT '\(identifier)', \(user), 'T', CAST('Users/Shared/' || i AS BLOB), 0, 0, i, x'', 0, 0 FROM n
      """
    let filled = try Program.run(["sqlite3", made.path + "/state/insula.db", sql])
    try #require(filled.status == 0, "\(filled.errors)")
  }

  @Test func eachUserHasRoomOfTheirOwn() throws {
    for number in 0..<3 { try fill("com.example.app\(number)", 501, Registry.mostGrantsOfUser / 3) }
    _ = try registry.add(grant("Users/Shared/x"))
    try fill("com.example.last", 501, 1)
    // Another one, who has filled what used to be everybody's, is refused alone.
    for number in 0..<5 { try fill("com.example.app\(number)", 502, Registry.mostGrantsOfOne) }
    #expect(
      storeError { _ = try registry.add(grant("Users/Shared/y", user: 502)) }
        == .tooManyGrantsOfUser(user: 502))
    #expect(storeError { _ = try registry.add(grant("Users/Shared/y")) } == .tooManyGrantsOfUser(user: 501))
    _ = try registry.add(grant("Users/Shared/y", user: 503))
    #expect(StoreError.tooManyGrantsOfUser(user: 502).description.contains("502"))
    #expect(try registry.grants().count > 50_000)
  }

  @Test func thereAreNotMoreThanCanBeRead() throws {
    try fill("com.example.editor", 501, Registry.mostGrantsOfOne)
    #expect(try registry.grants().count == Registry.mostGrantsOfOne)
    #expect(
      storeError { _ = try registry.add(grant("Users/Shared/x")) }
        == .tooManyGrants(identifier: "com.example.editor"))
    _ = try registry.add(grant("Users/Shared/x", user: 502))
  }

  /// Each change of an app asks for the numbers of all grants: what one user has in them does not matter.
  @Test func numbersAreReadWithoutWhatTheyAreOf() throws {
    let known = try [501, 502].map { try registry.add(grant("Users/Shared/x", user: $0)) }
    #expect(try registry.grantNumbers() == Set(known.map(\.id)))
    #expect(try registry.grants(among: [known[1].id, 99]) == [known[1]])
    let damaged = try Program.run(
      ["sqlite3", made.path + "/state/insula.db", "UPDATE grants SET user = -5 WHERE id = \(known[0].id)"])
    try #require(damaged.status == 0, "\(damaged.errors)")
    #expect(try registry.grantNumbers() == Set(known.map(\.id)))
    #expect(try registry.grants(among: [known[1].id]) == [known[1]])
    #expect(throws: StoreError.self) { try registry.grants() }
  }

  /// However many users have as much as they may, their daemon starts.
  @Test func allThatWereAddedCanBeRead() throws {
    for user in 501...506 as ClosedRange<UInt32> {
      for app in 0..<2 { try fill("com.example.app\(app)", user, Registry.mostGrantsOfUser / 2) }
    }
    #expect(try registry.grants().count == 6 * Registry.mostGrantsOfUser)
  }

  @Test func onePathThatCanNotBeUsedKeepsNobodyFromTheOthers() throws {
    let known = try registry.add(grant("Users/Shared/x"))
    var moved = try registry.add(grant("Users/Shared/y"))
    // None is written, whoever asks for it.
    let place = moved
    moved.path = Array(repeating: [0x78], count: GrantPath.deepest + 1)
    try registry.update([moved])
    #expect(try registry.grants() == [known, place])
    let long = Array(repeating: "x", count: 4001).joined()
    let changed = try Program.run(
      [
        "sqlite3", made.path + "/state/insula.db",
        "UPDATE grants SET path = CAST('\(long)' AS BLOB) WHERE id = 2",
      ])
    try #require(changed.status == 0, "\(changed.errors)")
    #expect(try registry.grants() == [known])
  }
}
