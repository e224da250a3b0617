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
  private let house: AppHouse
  private var library: String { "\(house.home)/Library" }

  init() throws {
    house = try AppHouse()
    try house.addIdentity("forger", team: "TEAM1")
    try house.addIdentity("rotated", team: "TEAM1")
    try house.bundle {
      $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
    }
  }

  private func forge(_ name: String = "Forged.app", _ change: (inout AppHouse.Plan) -> Void) throws {
    try house.bundle(name) {
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

  /// Each is refused while the team is the first root's, whether its app is still there or not.
  @Test(arguments: [false, true]) func teamIsOneRoots(isGone: Bool) throws {
    let app = try house.install(for: house.users)
    if isGone { try house.uninstall(of: house.users, keepingData: true) }
    let before = try house.snapshot()
    for domain in [house.users, house.everyones] {
      try forge { $0.groups = ["group.one"] }
      try expectForeign(appFailure { try house.install("Forged.app", for: domain) }, "group")
      try forge { $0.clouds = ["iCloud.one"] }
      try expectForeign(appFailure { try house.install("Forged.app", for: domain) }, "iCloud")
      try forge { _ in }
      try expectForeign(appFailure { try house.install("Forged.app", for: domain) }, "nothing shared")
      try forge("Editor.app") {
        $0.identifier = "org.example.editor"; $0.version = "2"
      }
      if isGone || domain == house.everyones {
        try expectForeign(appFailure { try house.install("Editor.app", for: domain) }, "the same app")
      }
      if !isGone, domain == house.users {
        try expectForeign(appFailure { try house.update("Editor.app", for: domain) }, "update")
        let downgrade = appFailure { try house.update("Editor.app", for: domain, allowingDowngrade: true) }
        try expectForeign(downgrade, "downgrade")
      }
    }
    #expect(try house.snapshot() == before)
    #expect(try house.registry.apps() == (isGone ? [] : [app]))
  }

  /// Also where the check of the team as a whole has let it in: a store in which both were before.
  @Test func containersAndGrantsAreTheTeamsAlone() throws {
    let app = try house.install(for: house.users)
    let user = house.account.uid
    let grant = try house.registry.add(
      GrantRecord(
        identifier: app.identifier, user: user, team: app.signer,
        path: [Array("Users".utf8), Array("x".utf8)],
        isWritable: false, isDirectory: false, identity: ObjectIdentity(inode: 1, handle: [], created: 0),
        granted: 1))
    var forged = app
    forged.root = [1, 2, 3]
    let containers = try Containers(house.store, house.registry)
    for (kind, identifier) in [
      (ContainerKind.data, app.identifier), (.group, app.groups[0]), (.cloud, app.clouds[0]),
    ] {
      #expect(throws: StoreError.self, "\(kind)") {
        try containers.make(kind, identifier, for: forged, home: house.account.name)
      }
      let found = try house.store.wholeContainer(
        kind, identifier, of: user, home: house.account.name, for: forged, house.registry)
      #expect(found == nil, "\(kind)")
      let own = try house.store.wholeContainer(
        kind, identifier, of: user, home: house.account.name, for: app, house.registry)
      #expect(own != nil, "\(kind)")
    }
    #expect(try house.registry.grants() == [grant])
    try house.registry.update(forged)
    #expect(try house.registry.grants() == [])
  }

  @Test func administratorGivesATeamToAnotherRoot() throws {
    let app = try house.install(for: house.users)
    try house.bundle {
      $0.signer = "rotated"; $0.version = "2"; $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
    }
    try expectForeign(appFailure { try house.update(for: house.users) }, "before")
    let root = try house.root(of: "rotated")
    #expect(try house.registry.pin("TEAM1", to: root.fingerprint) == app.root)
    let now = try house.update(for: house.users)
    #expect(now.version == "2" && now.root == root.fingerprint)
    #expect(try house.registry.containers().allSatisfy { $0.team == now.signer })
    // The first one is a stranger now.
    try house.bundle { $0.version = "3" }
    try expectForeign(appFailure { try house.update(for: house.users) }, "after")
    #expect(try house.findings(deep: true) == [])
  }

  @Test func appsOfAnEarlierVersionGetTheirRoots() throws {
    let app = try house.install(for: house.users)
    let changed = try Program.run([
      "sqlite3", house.temporary.appending("store/state/insula.db"),
      "UPDATE apps SET root = NULL; UPDATE containers SET team = NULL, root = NULL; DELETE FROM teams",
    ])
    #expect(changed.status == 0, "\(changed.errors)")
    #expect(try house.registry.apps().map(\.root) == [nil])
    try house.installer().recover()
    #expect(try house.registry.apps() == [app])
    #expect(try house.registry.containers().allSatisfy { $0.team == app.signer })
    #expect(try house.registry.root(of: "TEAM1") == app.root)
  }

  @Test(.enabled(if: Program.isRoot, "it takes two users"))
  func whatOthersHaveForThemselvesStandsAgainstNothing()
    throws
  {
    let daemon = try #require(Account.named("daemon"))
    try Homes(tree: house.store.tree, path: house.tree, mode: .system).add(daemon.name)
    let other = Asker(uid: daemon.uid, gid: daemon.gid, groups: [])
    try house.addIdentity("stranger", team: "TEAM9")
    try house.bundle("Strange.app") {
      $0.signer = "stranger"; $0.groups = ["group.one"]; $0.clouds = ["iCloud.one"]
    }
    try house.install("Strange.app", for: .user(daemon.name), asking: other)
    // Of the same identifier, group and iCloud container, of another team: for another user, and for
    // everyone.
    let own = try house.install(for: house.users)
    try house.uninstall(of: house.users)
    let everyones = try house.install(for: house.everyones)
    #expect(own.signer == everyones.signer)
    // In the first user's home the containers are the first app's.
    let containers = try Containers(house.store, house.registry)
    for (kind, identifier) in [(ContainerKind.group, everyones.groups[0]), (.cloud, everyones.clouds[0])] {
      #expect(throws: StoreError.self) {
        try containers.make(kind, identifier, for: everyones, home: daemon.name)
      }
    }
    _ = try containers.make(for: everyones, home: house.account.name)
  }

  /// What was kept is the team's; removing it is asked for by the app's identifier.
  @Test func keptDataIsForTheSameTeamAlone() throws {
    try house.install(for: house.users)
    try house.uninstall(of: house.users, keepingData: true)
    try house.addIdentity("stranger", team: "TEAM9")
    try house.bundle("Strange.app") { $0.signer = "stranger" }
    guard
      case .store(.containerOfOtherTeam) = appFailure({ try house.install("Strange.app", for: house.users) })
    else {
      Issue.record("it was given what another team's app has left")
      return
    }
    for identifier in ["org.example.editor", "group.one"] {
      let removed = try house.installer().uninstall(
        #require(AppIdentifier(identifier)), of: house.users, asking: house.owner)
      #expect(removed.app == nil && removed.left.isEmpty)
    }
    #expect(
      try house.names("\(library)/Containers") == [] && house.names("\(library)/Group Containers") == [])
    try house.install("Strange.app", for: house.users)
  }
}
