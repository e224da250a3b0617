// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// Whose containers go when an app goes: the two users 501 and 502, and the two teams ours and theirs.
@Suite struct RemovalRegistryTests {
  static let ours = Team("TEAM", root: [1])
  static let theirs = Team("TEAM", root: [2])
  static let users: [UInt32] = [501, 502]

  private let made: TestStore
  private let store: Store
  let registry: Registry

  init() throws {
    made = try TestStore()
    store = try made.open()
    registry = try Registry(of: store)
  }

  func app(
    user: UInt32? = nil, team: Team = ours, groups: [String] = ["group.a"]
  ) throws -> InstalledApp {
    var app = try InstalledApp.example(user: user, groups: groups)
    (app.team, app.root) = (team.text, team.root)
    return app
  }

  @discardableResult
  func install(
    user: UInt32? = nil, team: Team = ours, groups: [String] = ["group.a"]
  ) throws -> InstalledApp {
    let app = try app(user: user, team: team, groups: groups)
    try registry.add(app)
    return app
  }

  func uninstall(user: UInt32? = nil, keepingData: Bool = false) throws {
    _ = try registry.remove(app().identifier, of: user, keepingData: keepingData)
  }

  /// Notes the containers that the app and its group have for a user.
  func use(by user: UInt32, team: Team? = ours, groups: [String] = ["group.a"]) throws {
    func note(_ kind: ContainerKind, _ identifier: String) throws {
      let record = try registry.note(
        ContainerRecord(
          uuid: "\(kind.rawValue)-\(identifier)-\(user)", kind: kind,
          identifier: #require(AppIdentifier(identifier)), user: user,
          path: "Users/\(user)/\(kind.rawValue)/\(identifier)", team: team))
      try registry.noteUse(of: record)
    }
    try note(.data, "com.example.editor")
    for group in groups { try note(.group, group) }
  }

  func marked() throws -> [String] { try registry.containers(isMarkedForRemoval: true).map(\.uuid) }

  private func all(of user: UInt32) -> [String] {
    ["data-com.example.editor-\(user)", "group-group.a-\(user)"]
  }

  private func keepers() throws -> [Keeper?] { try registry.containers().map(\.keeper) }

  // MARK: Other spellings

  /// The next version spells its group otherwise, and with the app goes what both versions have left.
  @Test func groupInAnotherCaseIsLeftToo() throws {
    var app = try install(groups: ["group.a"])
    for user in Self.users { try use(by: user) }
    app.groups = [try #require(AppIdentifier("GROUP.a"))]
    try registry.update(app)
    try use(by: 501, groups: ["GROUP.a"])
    #expect(try marked() == [], "the app still has it")
    try uninstall()
    #expect(try Set(marked()) == Set(all(of: 501) + all(of: 502) + ["group-GROUP.a-501"]))
  }

  /// Another app of the team that spells it otherwise has it still.
  @Test func groupInAnotherCaseIsUsed() throws {
    try install(groups: ["group.a"])
    var other = try InstalledApp.example("com.example.other", name: "Other", groups: ["GROUP.A"])
    (other.team, other.root) = (Self.ours.text, Self.ours.root)
    try registry.add(other)
    try use(by: 501)
    try uninstall()
    #expect(try marked() == ["data-com.example.editor-501"])
  }

  /// What is kept goes with an uninstall of its identifier in any case.
  @Test func keptDataIsFoundInAnotherCase() throws {
    try install()
    try use(by: 501)
    try uninstall(keepingData: true)
    let spelled = try #require(AppIdentifier("COM.example.Editor"))
    #expect(try registry.doomLeft(by: spelled, of: 502, for: 502) == 0)
    #expect(try registry.doomLeft(by: spelled, of: 501, for: 501) == 1)
    #expect(try marked() == ["data-com.example.editor-501"])
  }

  // MARK: Who loses the app

  /// The attack: somebody keeps data, another user installs a copy for themselves and uninstalls it.
  @Test(arguments: [nil, 501] as [UInt32?], [ours, theirs])
  func keptDataOutlivesACopyOfAnotherUser(keeper: UInt32?, team: Team) throws {
    try install(user: keeper)
    for user in Self.users { try use(by: user) }
    try uninstall(user: keeper, keepingData: true)
    try install(user: 502, team: team)
    try uninstall(user: 502)
    // The second user had the machine's app too, and has not used their copy: that is kept as well.
    #expect(try marked() == (keeper == nil || team == Self.theirs ? [] : all(of: 502)))
    #expect(
      try registry.containers(user: 501).map(\.keeper) == [
        keeper == nil ? .machine : .owner, keeper == nil ? .machine : .owner,
      ])
  }

  /// As soon as their own copy has used it, it goes with that: theirs alone.
  @Test func dataThatWasUsedAgainGoesForItsUserAlone() throws {
    try install()
    for user in Self.users { try use(by: user) }
    try uninstall(keepingData: true)
    try install(user: 502)
    try use(by: 502)
    try uninstall(user: 502)
    #expect(try marked() == all(of: 502))
  }

  @Test func onlyAnAppOfTheGroupsTeamTakesIt() throws {
    for user in Self.users { try use(by: user, team: Self.theirs) }
    try install(user: 501)
    try uninstall(user: 501)
    try install()
    try uninstall()
    #expect(try marked().isEmpty)
  }

  /// An app that stays, but leaves its group.
  @Test(arguments: [nil, 502] as [UInt32?], [ours, theirs])
  func updateTakesGroupsOfThoseAloneWhoHaveTheApp(user: UInt32?, container: Team) throws {
    try install(user: user)
    for user in Self.users { try use(by: user, team: container) }
    try registry.update(app(user: user, groups: []))
    let lost = container == Self.theirs ? [] : user.map { [$0] } ?? Self.users
    #expect(try marked() == lost.map { "group-group.a-\($0)" })
  }

  /// Another spelling of the same group is the same group.
  @Test func updateThatSpellsAGroupAnewTakesNothing() throws {
    try install()
    try use(by: 501)
    try registry.update(app(groups: ["group.A"]))
    #expect(try marked().isEmpty)
  }

  @Test func machinesAppGoesForAllWhoHaveNoCopy() throws {
    try install()
    try install(user: 502)
    for user in Self.users { try use(by: user) }
    try uninstall()
    #expect(try marked() == all(of: 501))
    try uninstall(user: 502)
    #expect(try marked() == all(of: 501) + all(of: 502))
  }

  /// A machine's app of another team uses nothing of what the user's own copy has left.
  @Test func appOfAnotherTeamIsNoReasonToStay() throws {
    try install(team: Self.theirs)
    try install(user: 502)
    try use(by: 502)
    try use(by: 501, team: Self.theirs)
    try uninstall(user: 502)
    #expect(try marked() == all(of: 502))
  }

  /// The way out where everyone's app of another team has the name of what a user has kept.
  @Test func keptDataGoesAlthoughAnotherTeamsAppHasItsName() throws {
    let editor = try app().identifier
    try install(user: 501)
    for user in Self.users { try use(by: user) }
    try uninstall(user: 501, keepingData: true)
    try install(team: Self.theirs)
    #expect(try registry.doomLeft(by: editor, of: 501, for: 501) == 1)
    #expect(try registry.doomLeft(by: #require(AppIdentifier("GROUP.A")), of: 501, for: 501) == 1)
    #expect(try marked() == all(of: 501))
    // What the team's own app uses stays, also under a root that was replaced.
    try uninstall()
    try install(user: 502)
    #expect(try registry.doomLeft(by: editor, of: 502, for: 502) == 0)
    try registry.pin("TEAM", to: [1])
    try registry.pin("TEAM", to: [9])
    #expect(try registry.doomLeft(by: editor, of: 502, for: 502) == 0)
    #expect(try marked() == all(of: 501))
  }

  /// Containers in iCloud go by the order of their user alone, by their own name, while no app uses them.
  @Test func containersInCloudGoByTheirUsersOrder() throws {
    let name = try #require(AppIdentifier("iCloud.a"))
    var app = try app(user: 501)
    app.clouds = [name]
    try registry.add(app)
    for user in Self.users {
      try use(by: user)
      _ = try registry.note(
        ContainerRecord(
          uuid: "cloud-\(user)", kind: .cloud, identifier: name, user: user, path: "Users/\(user)/cloud",
          team: Self.ours))
    }
    #expect(try registry.doomLeft(by: name, of: 501, for: 501) == 0, "an app of its team is there")
    try uninstall(user: 501)
    #expect(try marked() == all(of: 501))
    // Neither an order about another name, nor an administrator's for everyone.
    let others = [(app.identifier, 501), (name, nil), (name, 503)] as [(AppIdentifier, UInt32?)]
    for (name, user) in others { #expect(try registry.doomLeft(by: name, of: user, for: user ?? 0) == 0) }
    // Another team's app of its name does not keep it.
    app = try self.app(team: Self.theirs)
    app.clouds = [name]
    try registry.add(app)
    #expect(try registry.doomLeft(by: name, of: 501, for: 0) == 1)
    #expect(try registry.doomLeft(by: name, of: nil, for: 502) == 1)
    #expect(try Set(marked()) == Set(all(of: 501) + ["cloud-501", "cloud-502"]))
  }

  /// Among the rows of all users, each statement finds its own by an index.
  @Test func statementsSearchByIndexes() throws {
    for statement in [Registry.releaseStatement, Registry.leftStatement, Registry.leftInCloudStatement] {
      let text = statement.map { "\($0)" }.joined()
      let plan = try Program.run(
        ["sqlite3", made.path + "/state/insula.db", "EXPLAIN QUERY PLAN \(text)"])
      try #require(plan.status == 0, "\(plan)")
      #expect(
        plan.output.contains("SEARCH containers USING INDEX") && !plan.output.contains("SCAN"), "\(plan)")
      #expect(!plan.output.contains("INDEX sqlite_autoindex_containers"), "\(plan)")
    }
  }

  // MARK: What was kept

  @Test func whatWasKeptOutlivesTheMachinesNextApp() throws {
    try install(user: 501)
    try use(by: 501)
    try uninstall(user: 501, keepingData: true)
    try install()
    try use(by: 502)
    try registry.update(app(groups: []))
    try uninstall()
    #expect(try marked() == all(of: 502))
    #expect(try registry.containers(user: 501).map(\.keeper) == [.owner, .owner])
  }

  @Test func whoHasKeptItMayRemoveIt() throws {
    let editor = try app().identifier
    try install(user: 501)
    try use(by: 501)
    try uninstall(user: 501, keepingData: true)
    try install()
    try use(by: 502)
    try uninstall(keepingData: true)
    // Not what belongs to others.
    #expect(try registry.doomLeft(by: editor, of: 503, for: 503) == 0)
    // An administrator: what was kept for the machine, not what a user has kept.
    #expect(try registry.doomLeft(by: editor, of: nil, for: 0) == 1)
    #expect(try marked() == ["data-com.example.editor-502"])
    #expect(try registry.doomLeft(by: editor, of: 501, for: 501) == 1)
    #expect(try marked() == ["data-com.example.editor-501", "data-com.example.editor-502"])
    // Where they are one person, they need not say so.
    #expect(try registry.doomLeft(by: #require(AppIdentifier("group.a")), of: nil, for: 501) == 2)
  }

  /// The decision is carried out by whoever comes next, should its process be stopped.
  @Test(arguments: [false, true]) func intentDecidesForItsUserAlone(keepingData: Bool) throws {
    let own = try install(user: 502)
    try install(user: 501)
    for user in Self.users { try use(by: user) }
    let noted = try registry.begin(.uninstall(own, keepingData: keepingData))
    registry.leave(noted)
    try registry.finish(#require(try Registry(of: store).intents().first))
    #expect(try marked() == (keepingData ? [] : all(of: 502)))
    #expect(try registry.containers(user: 501).allSatisfy { $0.keeper == nil })
    #expect(try registry.containers(user: 502).allSatisfy { ($0.keeper == .owner) == keepingData })
  }

  // MARK: Stores of earlier versions

  @Test func whatHadNoAppBeforeWasKept() throws {
    try install(user: 502)
    for user in Self.users { try use(by: user, team: nil) }
    let file = made.path + "/state/insula.db"
    let earlier = """
      DROP INDEX grants_in_ejected_homes; ALTER TABLE grants DROP COLUMN ejected;
      ALTER TABLE containers DROP COLUMN kept; DELETE FROM migrations WHERE version >= 14;
      DROP TABLE IF EXISTS removed; DROP TABLE IF EXISTS adoptions;
      DROP TABLE IF EXISTS former_roots; DROP TABLE IF EXISTS holders; DROP TABLE IF EXISTS home_owners;
      PRAGMA user_version = 13
      """
    try #require(Program.run(["sqlite3", file, earlier]).status == 0)
    let migrated = try Registry(of: store)
    #expect(try migrated.containers(user: 501).map(\.keeper) == [.machine, .machine])
    #expect(try migrated.containers(user: 502).map(\.keeper) == [nil, nil])
    #expect(try migrated.problems().isEmpty)
  }

  // MARK: Other statements that change the rows of several

  /// What was decided stays decided when an administrator names another root for the team, for all users.
  @Test func anotherRootForATeamChangesThatTeamAlone() throws {
    let stranger = Team("OTHER", root: [1])
    let app = try install()
    var other = try InstalledApp.example("com.example.other", name: "Other")
    (other.team, other.root) = (stranger.text, stranger.root)
    try registry.add(other)
    for user in Self.users {
      for (identifier, team) in [(app.identifier, Self.ours), (other.identifier, stranger)] {
        try registry.put(
          ConsentRecord(identifier, user: user, team: team, .photos, isAllowed: false, changed: 7))
      }
      try registry.choose(app, for: "public.text", of: user)
    }
    try registry.pin("TEAM", to: [1])
    try registry.pin("TEAM", to: [9])
    #expect(
      try registry.consents().map(\.team)
        == [Team("TEAM", root: [9]), Team("TEAM", root: [9]), stranger, stranger])
    // The app itself is under the new root by an update alone, and then it has all that again.
    for user in Self.users { #expect(try registry.openers(of: user) == [:]) }
    var updated = app
    updated.root = [9]
    try registry.update(updated)
    for user in Self.users {
      #expect(try registry.openers(of: user) == ["public.text": "com.example.editor"])
    }
  }

  /// The same letters by other bytes are another home.
  @Test func homeThatIsForgottenIsNotItsNamesakes() throws {
    for (user, home) in [(501, "\u{e9}"), (502, "e\u{301}")] as [(UInt32, String)] {
      var app = try app(user: user)
      app.path = "Users/\(home)/Applications/Editor.app"
      try registry.add(app)
    }
    try registry.forgetHome("\u{e9}")
    #expect(try registry.apps().map(\.user) == [502])
  }

  /// A home that goes takes along what is noted of things in it: of its owner, and not of their other home.
  @Test func whatIsInAHomeIsForgottenOfItsOwnerAlone() throws {
    for user in Self.users {
      for home in ["one", "other"] {
        let record = try registry.note(
          ContainerRecord(
            uuid: "\(home)-\(user)", kind: .data,
            identifier: #require(AppIdentifier("com.example.\(home)")), user: user,
            path: "Users/\(home)/x-\(user)", team: Self.ours))
        try registry.noteRemoval(of: record, at: 1)
        _ = try registry.note(
          ContainerRecord(
            uuid: "again-\(home)-\(user)", kind: .data,
            identifier: #require(AppIdentifier("com.example.\(home)")), user: user,
            path: "Users/\(home)/x-\(user)", team: Self.ours))
      }
      var app = try app(user: user)
      app.path = "Users/one/Applications/\(user).app"
      try registry.add(app)
    }
    try registry.forget(home: "one", of: 501)
    #expect(
      try registry.containers().map(\.uuid).sorted() == [
        "again-one-502", "again-other-501", "again-other-502",
      ])
    #expect(try registry.removedContainers().filter(\.isBeingDeleted).map(\.container.uuid) == ["one-501"])
    #expect(try registry.apps().map(\.user) == [502])
  }

  /// A home that is given to another account takes along what lies in it, and nothing else of its user.
  @Test func adoptionMovesWhatLiesInTheHomeAlone() throws {
    for user in Self.users { try use(by: user) }
    // Whatever number it had: that of the account may have changed.
    try registry.finish(AdoptionIntent(home: "501", former: 504, owner: 503), forgetsFormer: false)
    #expect(try registry.containers(user: 503).map(\.uuid) == all(of: 501))
    #expect(try registry.containers(user: 502).map(\.uuid) == all(of: 502))
  }
}
