// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What is noted for an app under a former root of its team, after an administrator has named another one:
/// the users 501 and 502 have everyone's app, and 503 has one of their own that somebody else has signed.
@Suite struct SuccessorRegistryTests {
  private static let former = Team("TEAM", root: [1])
  private static let current = Team("TEAM", root: [9])
  private static let impostor = Team("TEAM", root: [3])

  private let made: TestStore
  private let store: Store
  private let registry: Registry
  private let app: InstalledApp

  init() throws {
    made = try TestStore()
    store = try made.open()
    registry = try Registry(of: store)
    app = try Self.app(Self.former)
    try registry.add(app)
    try registry.pin("TEAM", to: [1])
    try registry.pin("TEAM", to: [9])
    try registry.add(try Self.app(Self.impostor, user: 503))
    for user: UInt32 in [501, 502, 503] {
      let team = user == 503 ? Self.impostor : Self.former
      for (service, isAllowed) in [(PrivacyService.photos, false), (.contacts, true)] {
        try registry.put(
          ConsentRecord(app.identifier, user: user, team: team, service, isAllowed: isAllowed, changed: 7))
      }
      _ = try registry.add(
        GrantRecord(
          identifier: app.identifier, user: user, team: team,
          path: [Array("Users".utf8), [UInt8(user % 256)]],
          isWritable: true, isDirectory: false, identity: ObjectIdentity(inode: 1, handle: [], created: 0),
          granted: 7))
      for (kind, identifier) in [
        (ContainerKind.data, app.identifier), (.group, app.groups[0]), (.group, app.groups[1]),
        (.cloud, app.clouds[0]),
      ] {
        _ = try registry.note(
          ContainerRecord(
            uuid: UUIDText.random(), kind: kind, identifier: identifier, user: user,
            path: "Users/\(user)/\(kind.rawValue)/\(identifier)", team: team))
      }
    }
  }

  private static func app(
    _ team: Team, user: UInt32? = nil, groups: [String] = ["group.a", "group.b"]
  ) throws -> InstalledApp {
    var app = try InstalledApp.example(user: user, groups: groups, clouds: ["iCloud.a"])
    (app.team, app.root) = (team.text, team.root)
    return app
  }

  @Test func isTheUpdatesUnderTheNewRoot() throws {
    try registry.update(Self.app(Self.current, groups: ["group.a"]))
    let teams = [501: Self.current, 502: Self.current, 503: Self.impostor]
    let consents = try registry.consents()
    #expect(consents.count == 6)
    for consent in consents { #expect(consent.team == teams[Int(consent.user)], "\(consent)") }
    #expect(consents.filter { $0.service == .photos }.allSatisfy { !$0.isAllowed })
    let grants = try registry.grants()
    #expect(grants.map(\.user) == [501, 502, 503])
    for grant in grants { #expect(grant.team == teams[Int(grant.user)], "\(grant)") }
    for container in try registry.containers() {
      #expect(container.team == teams[Int(container.user)], "\(container)")
      // The group that the update has left goes, of those whose app it was.
      let isLeft = container.identifier.text == "group.b" && container.user != 503
      #expect(container.isMarkedForRemoval == isLeft, "\(container)")
    }
  }

  /// The same for one that is installed after the former one has gone, and has left its data.
  @Test func keptDataIsForAnAppUnderTheNewRoot() throws {
    _ = try registry.remove(app.identifier, of: nil, keepingData: true)
    try registry.add(Self.app(Self.current))
    let data = try registry.containers(kind: .data)
    #expect(data.map(\.team) == [Self.current, Self.current, Self.impostor])
    #expect(data.map(\.keeper) == [.machine, .machine, nil])
    #expect(try registry.consents().map(\.user) == [503, 503])
  }

  /// Nothing of the team's is for an app that comes back under a former root, or under one that never was.
  @Test(arguments: [[1], [3]] as [[UInt8]]) func isNotForOtherRoots(root: [UInt8]) throws {
    try registry.update(Self.app(Self.current))
    try registry.update(Self.app(Team("TEAM", root: root)))
    #expect(try registry.consents().map(\.user) == [503, 503])
    #expect(try registry.grants().map(\.user) == [503])
    #expect(try registry.containers(user: 501).allSatisfy { $0.team == Self.current })
  }

  @Test func teamsAreOneUnderARootAndItsFormerOnes() throws {
    #expect(try registry.areOneTeam(Self.former, Self.current))
    #expect(try registry.areOneTeam(Self.current, Self.former))
    #expect(try !registry.areOneTeam(Self.impostor, Self.current))
    #expect(try !registry.areOneTeam(Self.impostor, Self.former))
    #expect(try !registry.areOneTeam(Team("OTHER", root: [1]), Team("OTHER", root: [9])))
    #expect(try registry.areOneTeam(Self.impostor, Self.impostor))
  }

  // MARK: Somebody else's rows

  /// The root of each user's rows, as far as a table has some.
  private func roots(_ table: TeamTable) throws -> String {
    let query = "SELECT DISTINCT user, hex(root) FROM \(table.name) WHERE team = 'TEAM' ORDER BY user"
    let rows = try Program.run(["sqlite3", made.path + "/state/insula.db", query])
    try #require(rows.status == 0, "\(rows)")
    return rows.output
  }

  /// Chooses everyone's app for a type, and notes a container as removed, for each user.
  private func fillAllTables() throws {
    for user: UInt32 in [501, 502, 503] {
      let chosen = user == 503 ? try Self.app(Self.impostor, user: 503) : app
      try registry.choose(chosen, for: "public.text", of: user)
      let container = try #require(try registry.containers(user: user).first { $0.kind == .cloud })
      try registry.noteRemoval(of: container, at: 7)
    }
  }

  /// The attack: a user has allowed much to an impostor's app, and an administrator assigns the team anew.
  ///
  /// Nothing of the impostor's is the team's then, and nothing of it is lost.
  @Test func impostorsRowsStayTheirs() throws {
    try fillAllTables()
    #expect(try registry.pin("TEAM", to: [8]) == [9])
    for table in TeamTable.allCases {
      #expect(try roots(table) == "501|08\n502|08\n503|03\n", "\(table)")
    }
    let now = Team("TEAM", root: [8])
    #expect(try registry.isSuccessor(now, of: Self.former) && registry.isSuccessor(now, of: Self.current))
    #expect(try !registry.isSuccessor(now, of: Self.impostor))
    #expect(try registry.formerRoots() == [now: [[1], [9]]])
    // Also when the impostor's user gets the team's own app.
    _ = try registry.remove(app.identifier, of: 503, keepingData: true)
    try registry.add(Self.app(now, user: 503))
    #expect(try registry.consents(of: 503).isEmpty)
    #expect(try registry.containers(user: 503).allSatisfy { $0.team == Self.impostor })
  }

  /// Of a team that is assigned to no root nothing moves, as long as nobody says which root was the team's.
  @Test func teamWithoutARootHasNothingToMove() throws {
    try fillAllTables()
    let made = try Program.run(
      [
        "sqlite3", self.made.path + "/state/insula.db", "DELETE FROM teams; DELETE FROM former_roots",
      ])
    try #require(made.status == 0, "\(made)")
    #expect(try registry.pin("TEAM", to: [8]) == nil)
    for table in TeamTable.allCases {
      #expect(try roots(table) == "501|01\n502|01\n503|03\n", "\(table)")
    }
    #expect(try registry.formerRoots() == [:])
    // This is how one says so.
    try registry.pin("TEAM", to: [1])
    try registry.pin("TEAM", to: [8])
    for table in TeamTable.allCases {
      #expect(try roots(table) == "501|08\n502|08\n503|03\n", "\(table)")
    }
  }

  /// Versions that did not know roots have left rows without one, which an administrator's word is about.
  @Test func rowsWithoutARootMove() throws {
    try fillAllTables()
    for table in TeamTable.allCases {
      let query = "UPDATE \(table.name) SET root = NULL WHERE user = 502"
      try #require(try Program.run(["sqlite3", made.path + "/state/insula.db", query]).status == 0)
    }
    try registry.pin("TEAM", to: [8])
    for table in TeamTable.allCases {
      #expect(try roots(table) == "501|08\n502|08\n503|03\n", "\(table)")
    }
  }

  /// Each table whose rows are somebody's of a team is one that follows when the team's root is replaced.
  @Test func noTableIsLeftOut() throws {
    let query = """
      SELECT m.name FROM sqlite_schema AS m
      WHERE m.type = 'table' AND 3 = (
        SELECT count(*) FROM pragma_table_info(m.name) WHERE name IN ('team', 'root', 'user'))
      ORDER BY m.name
      """
    let tables = try Program.run(["sqlite3", made.path + "/state/insula.db", query])
    let known = TeamTable.allCases.map { "\($0.name)" } + ["apps"]
    #expect(tables.output.split(separator: "\n").map(String.init) == known.sorted(), "\(tables)")
  }
}
