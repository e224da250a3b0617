// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// Apps that are noted for another number than that of the home's owner, as after usermod(8) and chown(1).
@Suite struct StrayAppTests {
  /// A number that no account has.
  private static let gone: UInt32 = 4_000_000_001

  private let fixture: TestFixture
  private var registry: Registry { fixture.registry }
  private var owner: UInt32 { fixture.account.uid }

  init() throws {
    fixture = try TestFixture()
    // In the account's home, and in one that belongs to the number.
    for (home, name) in [
      (fixture.account.name, "Editor"), (fixture.account.name, "Second"), ("old", "Editor"),
    ] {
      var app = try InstalledApp.example(
        "com.example.\(name).\(home == "old" ? "old" : "own")", user: Self.gone, name: name)
      app.path = "Users/\(home)/Applications/\(name).app"
      try registry.add(app)
      try FileManager.default.createDirectory(
        atPath: "\(fixture.path)/tree/\(app.path)", withIntermediateDirectories: true)
    }
    _ = try registry.note(
      ContainerRecord(
        uuid: "A", kind: .data, identifier: #require(AppIdentifier("com.example.editor.own")),
        user: Self.gone, path: "Users/\(fixture.account.name)/Library/Containers/com.example.editor.own",
        team: Team("TEAM", root: [1])))
    if Program.isRoot { try #require(lchown("\(fixture.path)/tree/Users/old", Self.gone, Self.gone) == 0) }
  }

  private func users() throws -> [String: UInt32?] {
    Dictionary(uniqueKeysWithValues: try registry.apps().map { ($0.identifier.text, $0.user) })
  }

  private func findings(repairing: Bool) throws -> [Finding] {
    var check = try StoreCheck(fixture.store, repairing: repairing)
    try check.run()
    return check.findings.filter { $0.problem.contains("is noted as an app of uid") }
  }

  /// They become the owner's, whose home it was before, too.
  @Test func adoptionMovesWhatLiesInTheHome() throws {
    let homes = try Homes(
      tree: fixture.store.tree, path: fixture.path + "/tree", mode: fixture.store.description.mode)
    _ = try homes.adopt(fixture.account.name, in: fixture.store)
    #expect(
      try users() == [
        "com.example.Editor.own": owner, "com.example.Second.own": owner, "com.example.Editor.old": Self.gone,
      ])
    #expect(try registry.containers().map(\.user) == [owner])
  }

  /// Two accounts have exchanged their numbers: the adoption of one home loses nothing of the other one.
  @Test func adoptionExchangesCopies() throws {
    var copy = try InstalledApp.example("com.example.second.own", user: owner)
    copy.path = "Users/old/Applications/Copy.app"
    try registry.add(copy)
    let adoption = AdoptionIntent(home: fixture.account.name, former: Self.gone, owner: owner)
    try registry.finish(adoption, forgetsFormer: false)
    let users = Dictionary(uniqueKeysWithValues: try registry.apps().map { ($0.path, $0.user) })
    let place = "Users/\(fixture.account.name)/Applications"
    #expect(
      users == [
        "\(place)/Editor.app": owner, "\(place)/Second.app": owner,
        "Users/old/Applications/Editor.app": Self.gone, "Users/old/Applications/Copy.app": Self.gone,
      ])
  }

  @Test(.enabled(if: Program.isRoot, "giving files away needs root")) func checkNamesAndMovesThem() throws {
    // The owner has another copy of one of them elsewhere: neither takes the other's place.
    var copy = try InstalledApp.example("com.example.second.own", user: owner)
    copy.path = "Users/old/Applications/Copy.app"
    try registry.add(copy)
    let place = "\(fixture.home)/Applications"
    #expect(try findings(repairing: false).map(\.path) == ["\(place)/Editor.app", "\(place)/Second.app"])
    #expect(try findings(repairing: true).map(\.repaired) == [true, false])
    #expect(try findings(repairing: false).map(\.path) == ["\(place)/Second.app"])
    let users = try users()
    #expect(users["com.example.Editor.own"] == owner && users["com.example.Editor.old"] == Self.gone)
    #expect(users["com.example.Second.own"] == Self.gone && users["com.example.second.own"] == owner)
  }

  /// What is there by now at the path is another one's, and not what somebody has looked at before.
  @Test func rowsAreTakenByPathAndUser() throws {
    let stale = try #require(try registry.apps().first { $0.identifier.text == "com.example.Editor.own" })
    #expect(try registry.give(stale, to: owner))
    try registry.forgetStray(stale)
    #expect(try users()[stale.identifier.text] == owner)
    #expect(try !registry.give(stale, to: 502))
    #expect(try users()[stale.identifier.text] == owner)
    let other = try #require(try registry.apps().first { $0.identifier.text == "com.example.Second.own" })
    try registry.forgetStray(other)
    #expect(try registry.apps().count == 2)
  }

  /// A version that waits was ordered under the number that is another one's by now.
  @Test(arguments: [false, true]) func whatWaitsGoesWithTheNumber(isAdopted: Bool) throws {
    let apps = try registry.apps().filter { $0.identifier.text.hasSuffix(".own") }
    try #require(apps.count == 2)
    for app in apps {
      try registry.note(
        WaitingUpdate(
          name: "waits-\(app.name)", app: app, before: app,
          requester: .init(uid: Self.gone, gid: Self.gone, groups: [], mayHaveLeftGroups: false),
          allowsDowngrade: false, since: 1))
    }
    if isAdopted {
      let adoption = AdoptionIntent(home: fixture.account.name, former: Self.gone, owner: owner)
      try registry.finish(adoption, forgetsFormer: false)
    } else {
      #expect(try registry.give(apps[0], to: owner))
    }
    let left = isAdopted ? [] : ["waits-\(apps[1].name)"]
    #expect(try registry.waitingUpdates().map(\.name) == left)
  }

  @Test func aPathIsNoPrefixOfANeighbours() throws {
    let place = "Users/\(fixture.account.name)"
    let own = try registry.apps(below: place, notOf: owner)
    #expect(Set(own.map(\.name)) == ["Editor", "Second"] && own.allSatisfy { $0.user == Self.gone })
    #expect(try registry.apps(below: place, notOf: Self.gone).isEmpty)
    #expect(try registry.apps(below: String(place.dropLast()), notOf: owner).isEmpty)
    #expect(try registry.apps(below: "\(place)/Applications/Editor.app", notOf: owner).isEmpty)
  }
}
