// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

/// Apps in a home that was ejected, whose user has another home by now.
@Suite struct LostAppTests {
  private let fixture: AppFixture
  private var registry: Registry { fixture.registry }
  private var user: UInt32 { fixture.account.uid }
  private var place: String { "\(fixture.home)/Applications" }

  /// Two apps of the user's, of which one is lost; the other one is in the home that is there now.
  init() throws {
    fixture = try AppFixture(teams: ["TEAM1", "TEAM2"])
    for (name, identifier) in [("Editor.app", "org.example.editor"), ("Here.app", "org.example.here")] {
      try fixture.bundle(name) {
        $0.identifier = identifier
        $0.groups = ["group.\(identifier)"]
      }
      try fixture.install(name, for: fixture.users, by: fixture.owner)
    }
    let volume = try registry.add(
      VolumeRecord(
        in: .users, name: Array(fixture.account.name.utf8), path: Array("/homes".utf8),
        identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: nil, isReadOnly: false, added: 1))
    try registry.note(owner: user, ofHome: volume.id)
    try registry.ejectHome(volume)
    for path in ["\(place)/Editor.app", "\(fixture.home)/Library/Containers/org.example.editor"] {
      try #require(try Program.run(["rm", "-r", "\(fixture.tree)/\(path)"]).ending == .ok)
    }
  }

  private func names() throws -> [String] { try registry.apps().map { "\($0.identifier) \($0.user != nil)" } }

  /// It can be installed again, also another team's of that identifier, and at the same place.
  @Test(arguments: [false, true]) func theyAreInstalledAgain(isOthers: Bool) throws {
    try registry.put(
      ConsentRecord(
        #require(AppIdentifier("org.example.editor")), user: user,
        team: #require(try registry.apps().first).signer, .photos, isAllowed: true, changed: 7))
    let failure = AppFailure.alreadyInstalled(
      identifier: "org.example.here", path: "/\(place)/Here.app")
    #expect(appFailure { try fixture.install("Here.app", for: fixture.users, by: fixture.owner) } == failure)
    try fixture.bundle {
      $0.version = "2"
      if isOthers { $0.team = "TEAM2" }
    }
    let app = try fixture.install(for: fixture.users, by: fixture.owner)
    #expect(try registry.app(app.identifier, for: user) == app && app.path == "\(place)/Editor.app")
    #expect(try names() == ["org.example.editor true", "org.example.here true"])
    // What was decided about another team's app is not for this one.
    #expect(try registry.consents().count == (isOthers ? 0 : 1))
    try fixture.uninstall(of: fixture.users, by: fixture.owner)
    #expect(try names() == ["org.example.here true"])
  }

  /// Everyone's is there for the user, who can decide about it.
  @Test func theyHideNobodyElses() throws {
    try fixture.bundle { $0.version = "2" }
    try fixture.bundle("Here.app") { $0.identifier = "org.example.here" }
    let all = try fixture.install()
    try fixture.install("Here.app")
    #expect(try registry.app(all.identifier, for: user) == all)
    #expect(try registry.app(#require(AppIdentifier("org.example.here")), for: user)?.user == user)
    let consent = ConsentRecord(
      all.identifier, user: user, team: all.signer, .photos, isAllowed: true, changed: 7)
    try registry.put(consent, about: all)
    #expect(try registry.consents() == [consent])
    let listed = try AppQueries(fixture.store, registry).apps(for: user).map {
      "\($0.identifier) \($0.home != nil)"
    }
    #expect(
      listed.sorted() == ["org.example.editor false", "org.example.editor true", "org.example.here true"])
    _ = try AppQueries(fixture.store, registry).path(of: .documents, all.identifier, for: user) {
      () throws(StoreError) in try Containers(fixture.store, registry)
    }
    #expect(try registry.containers(kind: .data, user: user).contains { $0.team == all.signer })
  }

  /// What is noted of the ejected home goes for good; what is there stays.
  @Test func ejectedHomesAreForgottenForGood() throws {
    let name = fixture.account.name
    let (app, path) = (try #require(try registry.apps().first), "Users/\(name)/Documents")
    try fixture.store.forgetEjectedHome(name, in: registry)
    #expect(try names() == ["org.example.here true"])
    let left = try registry.containers().map(\.identifier.text)
    #expect(left.contains("org.example.here") && !left.contains(app.identifier.text))
    #expect(try !registry.isInEjectedHome(path))
    #expect(throws: StoreError.noEjectedHome(name: name)) {
      try fixture.store.forgetEjectedHome(name, in: registry)
    }
    try fixture.install(for: fixture.users, by: fixture.owner)
    #expect(try names() == ["org.example.editor true", "org.example.here true"])
  }

  /// What can be another ejected home's waits for the last of them.
  @Test(arguments: [nil, 1, 0] as [UInt32?]) func anotherEjectedHomeKeepsItsApps(other: UInt32?) throws {
    let name = fixture.account.name
    let volume = try registry.add(
      VolumeRecord(
        in: .users, name: Array(name.utf8), path: Array("/other".utf8),
        identity: ObjectIdentity(inode: 1, handle: [], created: 1), owner: nil, isReadOnly: false, added: 1))
    if let other { try registry.note(owner: user + other, ofHome: volume.id) }
    try registry.ejectHome(volume)
    try fixture.store.forgetEjectedHome(name, from: "/homes", in: registry)
    let isPlain = other == 1
    #expect(try names() == (isPlain ? [] : ["org.example.editor true"]) + ["org.example.here true"])
    try fixture.store.forgetEjectedHome(name, in: registry)
    #expect(try names() == ["org.example.here true"])
  }

  /// While the home that has the name by now is away, nobody can tell what is the ejected one's.
  @Test func nothingIsForgottenOfAHomeThatIsAway() throws {
    let (name, home) = (fixture.account.name, "\(fixture.tree)/\(fixture.home)")
    try #require(rename(home, home + ".away") == 0)
    try fixture.store.link(name, to: "/homes/other")
    #expect(throws: StoreError.homeIsAway(path: "\(fixture.store.path)/tree/Users/\(name)")) {
      try fixture.store.forgetEjectedHome(name, in: registry)
    }
    for app in try registry.apps() { #expect(try !registry.isLost(app)) }
    #expect(try names() == ["org.example.editor true", "org.example.here true"])
    try #require(unlink(home) == 0 && rename(home + ".away", home) == 0)
    try fixture.store.forgetEjectedHome(name, in: registry)
    #expect(try names() == ["org.example.here true"])
  }
}
