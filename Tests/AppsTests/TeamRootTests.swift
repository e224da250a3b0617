// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Bundles
internal import Foundation
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// A second root that the store trusts signs apps of the first one's team.
@Suite struct TeamRootTests {
  private let fixture: AppFixture
  private var library: String { "\(fixture.home)/Library" }

  init() throws {
    fixture = try AppFixture()
    try fixture.addIdentity("forger", team: "TEAM1")
    try fixture.addIdentity("rotated", team: "TEAM1")
    try fixture.bundle {
      $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
    }
  }

  private func forge(_ name: String = "Forged.app", _ change: (inout AppFixture.Plan) -> Void) throws {
    try fixture.bundle(name) {
      $0.identifier = "org.example.forged"; $0.signer = "forger"
      change(&$0)
    }
  }

  private func expectForeign(_ failure: AppFailure?, _ words: String) throws {
    guard case .store(.teamOfOtherRoot(team: "TEAM1", _, _)) = failure else {
      Issue.record("\(words): \(String(describing: failure))")
      return
    }
    #expect("\(try #require(failure))".contains("'insula trust add FILE --team TEAM1 --store STORE'"))
  }

  /// Each is refused while the team is the first root's, whether its app is still there or not: to all if the
  /// app is everyone's, and otherwise to its user.
  @Test(arguments: [false, true], [false, true]) func teamIsOneRoots(isGone: Bool, isEveryones: Bool) throws {
    let own = isEveryones ? fixture.everyones : fixture.users
    let app = try fixture.install(for: own)
    if isGone { try fixture.uninstall(of: own, keepingData: true) }
    let before = try fixture.snapshot()
    for domain in isEveryones ? [fixture.users, fixture.everyones] : [fixture.users] {
      try forge { $0.groups = ["group.one"] }
      try expectForeign(appFailure { try fixture.install("Forged.app", for: domain) }, "group")
      try forge { $0.clouds = ["iCloud.one"] }
      try expectForeign(appFailure { try fixture.install("Forged.app", for: domain) }, "iCloud")
      try forge { _ in }
      try expectForeign(appFailure { try fixture.install("Forged.app", for: domain) }, "nothing shared")
      try forge("Editor.app") {
        $0.identifier = "org.example.editor"; $0.version = "2"
      }
      if isGone || domain != own {
        try expectForeign(appFailure { try fixture.install("Editor.app", for: domain) }, "the same app")
      }
      if !isGone, domain == own {
        try expectForeign(appFailure { try fixture.update("Editor.app", for: domain) }, "update")
        let downgrade = appFailure { try fixture.update("Editor.app", for: domain, allowingDowngrade: true) }
        try expectForeign(downgrade, "downgrade")
      }
    }
    #expect(try fixture.snapshot() == before)
    #expect(try fixture.registry.apps() == (isGone ? [] : [app]))
  }

  /// Also where the check of the team as a whole has let it in: a store in which both were before.
  ///
  /// The registry and the directories say it, each without the other.
  @Test(arguments: [true, false]) func containersAndGrantsAreTheTeamsAlone(isNoted: Bool) throws {
    let app = try fixture.install(for: fixture.users)
    for container in try fixture.registry.containers() where !isNoted {
      try fixture.forgetNote(of: container.path)
    }
    let user = fixture.account.uid
    let grant = try fixture.registry.add(
      GrantRecord(
        identifier: app.identifier, user: user, team: app.signer,
        path: [Array("Users".utf8), Array("x".utf8)],
        isWritable: false, isDirectory: false, identity: ObjectIdentity(inode: 1, handle: [], created: 0),
        granted: 1))
    var forged = app
    forged.root = [1, 2, 3]
    let containers = try Containers(fixture.store, fixture.registry)
    for (kind, identifier) in [
      (ContainerKind.data, app.identifier), (.group, app.groups[0]), (.cloud, app.clouds[0]),
    ] {
      #expect(throws: StoreError.self, "\(kind)") {
        try containers.make(kind, identifier, for: forged, home: fixture.account.name)
      }
      let found = try fixture.store.wholeContainer(
        kind, identifier, of: user, home: fixture.account.name, for: forged, fixture.registry)
      #expect(found == nil, "\(kind)")
      let own = try fixture.store.wholeContainer(
        kind, identifier, of: user, home: fixture.account.name, for: app, fixture.registry)
      #expect(own != nil, "\(kind)")
    }
    #expect(try fixture.registry.grants() == [grant])
    try fixture.registry.update(forged)
    #expect(try fixture.registry.grants() == [])
  }

  /// What users install for themselves decides nothing for others.
  @Test(.enabled(if: Program.isRoot, "it takes two users"), arguments: [false, true])
  func usersOwnAppsGiveNoTeamAway(isGone: Bool) throws {
    let daemon = try #require(Account.named("daemon"))
    try Homes(tree: fixture.store.tree, path: fixture.tree, mode: .system).add(daemon.name)
    let other = CallerIdentity(uid: daemon.uid, gid: daemon.gid, groups: [])
    try forge { $0.groups = ["group.one"] }
    try fixture.install("Forged.app", for: .user(daemon.name), by: other)
    if isGone { try fixture.uninstall("org.example.forged", of: .user(daemon.name), by: other) }
    #expect(try fixture.registry.root(of: "TEAM1") == nil)
    // Another user has the team's app, and so does everyone.
    let own = try fixture.install(for: fixture.users, by: fixture.owner)
    let all = try fixture.install(for: fixture.everyones)
    #expect(own.signer == all.signer)
    #expect(try fixture.registry.root(of: "TEAM1") == all.root)
    // Now the team is that root's for all.
    try forge { $0.version = "2" }
    try expectForeign(
      appFailure {
        if isGone {
          try fixture.install("Forged.app", for: .user(daemon.name), by: other)
        } else {
          try fixture.update("Forged.app", for: .user(daemon.name), by: other)
        }
      }, "the forger's")
  }

  /// An impostor's app is not the team's because an administrator says whose the team is.
  @Test(.enabled(if: Program.isRoot, "it takes two users"))
  func impostorsAppsDoNotMoveWithTheTeam() throws {
    let daemon = try #require(Account.named("daemon"))
    try Homes(tree: fixture.store.tree, path: fixture.tree, mode: .system).add(daemon.name)
    try forge {
      $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
    }
    let forged = try fixture.install("Forged.app", for: fixture.users, by: fixture.owner)
    let containers = try Containers(fixture.store, fixture.registry)
    let source = try TemporaryDirectory.open(fixture.temporary.appending("Editor.app"))
    let bundle = try CodeBundle(in: source, name: "Editor.app")
    let signer = bundle.verifySignature(try StoreTrust.read(fixture.store), at: fixture.now).signer
    let root = try #require(signer?.chain.last?.fingerprint)
    let made = try fixture.registry.containers()
    #expect(made.count == 3 && made.allSatisfy { $0.team == forged.signer })
    try fixture.registry.pin("TEAM1", to: root)
    #expect(try fixture.registry.apps() == [forged])
    let app = try fixture.install(for: fixture.everyones)
    _ = try containers.make(for: app, home: daemon.name)
    for (kind, identifier) in [(ContainerKind.group, app.groups[0]), (.cloud, app.clouds[0])] {
      // The first user's are the impostor's as before, and the second one's are the team's.
      for (name, stranger) in [(fixture.account.name, app), (daemon.name, forged)] {
        #expect(throws: StoreError.self, "\(kind) of \(name)") {
          try containers.make(kind, identifier, for: stranger, home: name)
        }
      }
    }
    #expect(try fixture.registry.containers(user: fixture.account.uid) == made)
    #expect(try fixture.registry.containers(user: daemon.uid).allSatisfy { $0.team == app.signer })
    // With the impostor's app goes what it has left, and the team's is free to have its own.
    try fixture.uninstall("org.example.forged", of: fixture.users, by: fixture.owner)
    _ = try containers.make(.group, app.groups[0], for: app, home: fixture.account.name)
  }

  @Test(arguments: [false, true]) func administratorGivesATeamToAnotherRoot(isEveryones: Bool) throws {
    let own = isEveryones ? fixture.everyones : fixture.users
    let app = try fixture.install(for: own)
    _ = try Containers(fixture.store, fixture.registry).make(for: app, home: fixture.account.name)
    try fixture.bundle {
      $0.signer = "rotated"; $0.version = "2"; $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
    }
    try expectForeign(appFailure { try fixture.update(for: own) }, "before")
    let root = try fixture.root(of: "rotated")
    // A user's own app has assigned the team for its user alone, so the administrator names its root first.
    if !isEveryones {
      #expect(try fixture.registry.pin("TEAM1", to: #require(app.root)) == nil)
    }
    #expect(try fixture.registry.pin("TEAM1", to: root.fingerprint) == app.root)
    // Until there is an update, the data are not the app's any more.
    #expect(try fixture.registry.apps() == [app])
    func described() throws -> AppDescription {
      try AppQueries(fixture.store, fixture.registry).app(app.identifier, for: fixture.account.uid)
    }
    // What is noted on their directories does not count any more: it was said who takes its place.
    #expect(try described().containers?.allSatisfy { $0.root == root.fingerprint.asHexadecimal } == true)
    #expect(try described().formerRoots == nil)
    #expect(throws: StoreError.self) {
      try Containers(fixture.store, fixture.registry).make(for: app, home: fixture.account.name)
    }
    let now = try fixture.update(for: own)
    #expect(now.version == "2" && now.root == root.fingerprint)
    // Backups that were made before are the team's still.
    #expect(try described().formerRoots == [#require(app.root).asHexadecimal])
    #expect(
      try AppQueries(fixture.store, fixture.registry).apps(for: nil).allSatisfy { $0.formerRoots != nil })
    #expect(try fixture.registry.containers().allSatisfy { $0.team == now.signer })
    // The first one is a stranger now.
    try fixture.bundle { $0.version = "3" }
    try expectForeign(appFailure { try fixture.update(for: own) }, "after")
    #expect(try fixture.findings(deep: true) == [])
  }

  /// After that, a user starts the version of the former root for the first time: the data are theirs, and
  /// the update's.
  @Test(.enabled(if: Program.isRoot, "it takes two users"), arguments: [false, true])
  func dataOfWhoComesLaterFollowTheUpdate(isGone: Bool) throws {
    let daemon = try #require(Account.named("daemon"))
    try Homes(tree: fixture.store.tree, path: fixture.tree, mode: .system).add(daemon.name)
    let app = try fixture.install(for: fixture.everyones)
    let containers = try Containers(fixture.store, fixture.registry)
    _ = try containers.make(for: app, home: fixture.account.name)
    try fixture.registry.pin("TEAM1", to: try fixture.root(of: "rotated").fingerprint)
    let made = try containers.make(for: app, home: daemon.name)
    #expect(made.allSatisfy { $0.team == app.signer })
    for container in made { try fixture.write("theirs", to: "store/tree/\(container.path)/letter") }
    try fixture.bundle {
      $0.signer = "rotated"; $0.version = "2"; $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
    }
    let now: InstalledApp
    if isGone {
      // The user gets the next version for themselves.
      try fixture.uninstall(of: fixture.everyones, keepingData: true)
      let caller = CallerIdentity(uid: daemon.uid, gid: daemon.gid, groups: [])
      now = try fixture.install(for: .user(daemon.name), by: caller)
    } else {
      now = try fixture.update(for: fixture.everyones)
    }
    let taken = try containers.make(for: now, home: daemon.name)
    #expect(taken.map(\.path) == made.map(\.path) && taken.allSatisfy { $0.team == now.signer })
    #expect(taken.map { fixture.text("\($0.path)/letter") } == ["theirs", "theirs", "theirs"])
    // Not for the former one any more, nor for somebody else who writes that name.
    var forged = app
    forged.root = [1, 2, 3]
    for stranger in [app, forged] {
      #expect(throws: StoreError.self) { try containers.make(for: stranger, home: daemon.name) }
    }
  }

  /// What a network's root signs in a team's name stands in nobody's way.
  @Test func networksAppsAssignNoTeam() throws {
    try forge { _ in }
    let forged = try fixture.install("Forged.app", for: .network)
    #expect(try fixture.registry.root(of: "TEAM1") == nil)
    let own = try fixture.install(for: fixture.users)
    try fixture.uninstall(of: fixture.users)
    let all = try fixture.install(for: fixture.everyones)
    #expect(own.signer == all.signer && forged.signer != all.signer)
    #expect(try fixture.registry.root(of: "TEAM1") == all.root)
  }

  @Test(arguments: [false, true]) func appsOfAnEarlierVersionGetTheirRoots(isEveryones: Bool) throws {
    let app = try fixture.install(for: isEveryones ? fixture.everyones : fixture.users)
    let changed = try Program.run([
      "sqlite3", fixture.temporary.appending("store/state/insula.db"),
      "UPDATE apps SET root = NULL; UPDATE containers SET team = NULL, root = NULL; DELETE FROM teams",
    ])
    #expect(changed.status == 0, "\(changed.errors)")
    #expect(try fixture.registry.apps().map(\.root) == [nil])
    try fixture.installer().recover()
    #expect(try fixture.registry.apps() == [app])
    #expect(try fixture.registry.containers().allSatisfy { $0.team == app.signer })
    #expect(try fixture.registry.root(of: "TEAM1") == (isEveryones ? app.root : nil))
  }

  @Test(.enabled(if: Program.isRoot, "it takes two users"))
  func whatOthersHaveForThemselvesStandsAgainstNothing()
    throws
  {
    let daemon = try #require(Account.named("daemon"))
    try Homes(tree: fixture.store.tree, path: fixture.tree, mode: .system).add(daemon.name)
    let other = CallerIdentity(uid: daemon.uid, gid: daemon.gid, groups: [])
    try fixture.addIdentity("stranger", team: "TEAM9")
    try fixture.bundle("Strange.app") {
      $0.signer = "stranger"; $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
    }
    try fixture.install("Strange.app", for: .user(daemon.name), by: other)
    // Of the same identifier, group and iCloud container, of another team: for another user, and for
    // everyone.
    let own = try fixture.install(for: fixture.users)
    try fixture.uninstall(of: fixture.users)
    let everyones = try fixture.install(for: fixture.everyones)
    #expect(own.signer == everyones.signer)
    // In the first user's home the containers are the first app's.
    let containers = try Containers(fixture.store, fixture.registry)
    for (kind, identifier) in [(ContainerKind.group, everyones.groups[0]), (.cloud, everyones.clouds[0])] {
      #expect(throws: StoreError.self) {
        try containers.make(kind, identifier, for: everyones, home: daemon.name)
      }
    }
    _ = try containers.make(for: everyones, home: fixture.account.name)
  }

  /// What was kept is the team's; removing it is asked for by the app's identifier.
  @Test func keptDataIsForTheSameTeamAlone() throws {
    try fixture.install(for: fixture.users)
    try fixture.uninstall(of: fixture.users, keepingData: true)
    try fixture.addIdentity("stranger", team: "TEAM9")
    try fixture.bundle("Strange.app") { $0.signer = "stranger" }
    guard
      case .store(.containerOfOtherTeam) = appFailure({
        try fixture.install("Strange.app", for: fixture.users)
      })
    else {
      Issue.record("it was given what another team's app has left")
      return
    }
    for identifier in ["org.example.editor", "group.one"] {
      let removed = try fixture.installer().uninstall(
        #require(AppIdentifier(identifier)), of: fixture.users, by: fixture.owner)
      #expect(removed.app == nil && removed.left.isEmpty)
    }
    #expect(
      try fixture.names("\(library)/Containers") == [] && fixture.names("\(library)/Group Containers") == [])
    try fixture.install("Strange.app", for: fixture.users)
  }
}
