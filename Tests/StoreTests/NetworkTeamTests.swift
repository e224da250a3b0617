// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// The roots of a network count for its apps alone, so they assign no team for the machine.
@Suite struct NetworkTeamTests {
  private let made: TestStore
  private let store: Store
  private let registry: Registry

  init() throws {
    made = try TestStore()
    store = try made.open()
    registry = try Registry(of: store)
  }

  private func app(
    _ identifier: String, root: [UInt8]?, inNetwork: Bool = true, user: UInt32? = nil
  ) throws -> InstalledApp {
    var app = try InstalledApp.example(identifier, user: user, name: identifier)
    app.root = root
    if inNetwork { app.path = "Network/Applications/\(identifier).app" }
    return app
  }

  private func install(_ app: InstalledApp) throws {
    let noted = try registry.begin(.install(app))
    try registry.finish(noted)
    registry.leave(noted)
  }

  @Test func networksAppAssignsNothing() throws {
    try install(try app("org.network.one", root: [2]))
    #expect(try registry.root(of: "TEAM") == nil)
    // The team's own app is as good as ever, for a user and for everyone; that one decides.
    try install(try app("org.team.users", root: [1], inNetwork: false, user: 501))
    try install(try app("org.team.everyones", root: [1], inNetwork: false))
    #expect(try registry.root(of: "TEAM") == [1])
    #expect(
      storeError { try install(try app("org.network.two", root: [2])) }
        == .teamOfOtherRoot(team: "TEAM", known: Team.digits(of: [1]), new: Team.digits(of: [2])))
  }

  /// An installation that fails leaves nothing, so it decides nothing for those who come after.
  @Test func onlyAnAppThatIsInstalledAssignsItsTeam() throws {
    let failed = try registry.begin(.install(app("org.team.failed", root: [2], inNetwork: false)))
    try registry.abandon(failed)
    registry.leave(failed)
    #expect(try registry.root(of: "TEAM") == nil)
    // While one is under way nobody knows whose the team will be, but one's own root is no reason to wait.
    let first = try registry.begin(.install(app("org.team.first", root: [1], inNetwork: false)))
    #expect(
      storeError { try install(try app("org.team.second", root: [2], inNetwork: false)) }
        == .appBusy(identifier: "org.team.first"))
    try install(try app("org.team.users", root: [2], inNetwork: false, user: 501))
    try install(try app("org.network.one", root: [2]))
    #expect(try registry.root(of: "TEAM") == nil)
    try install(try app("org.team.third", root: [1], inNetwork: false))
    #expect(try registry.root(of: "TEAM") == [1])
    try registry.finish(first)
    registry.leave(first)
    #expect(try registry.root(of: "TEAM") == [1])
    #expect(
      storeError { try install(try app("org.team.second", root: [2], inNetwork: false)) }
        == .teamOfOtherRoot(team: "TEAM", known: Team.digits(of: [1]), new: Team.digits(of: [2])))
  }

  /// In the network a team has one root as well.
  @Test func teamOfTheNetworkIsOneRoots() throws {
    try install(try app("org.network.one", root: [2]))
    #expect(
      storeError { try install(try app("org.network.two", root: [3])) }
        == .teamOfOtherRoot(team: "TEAM", known: Team.digits(of: [2]), new: Team.digits(of: [3])))
    try install(try app("org.network.two", root: [2]))
    #expect(try registry.root(of: "TEAM") == nil)
  }

  /// An app of an earlier version gets its root noted.
  @Test(arguments: [true, false]) func notedRootOfANetworksAppAssignsNothing(inNetwork: Bool) throws {
    let app = try app("org.network.one", root: nil, inNetwork: inNetwork)
    try registry.add(app)
    try registry.note(root: [2], of: app)
    #expect(try registry.apps().map(\.root) == [[2]])
    #expect(try registry.root(of: "TEAM") == (inNetwork ? nil : [2]))
  }

  /// What an earlier version has assigned is forgotten, unless an app outside of the network is under that
  /// root.
  @Test func whatAnEarlierVersionHasAssignedIsForgotten() throws {
    for (team, root) in [("TEAM", [2]), ("OTHER", [2]), ("THIRD", [1])] as [(String, [UInt8])] {
      try registry.pin(team, to: root)
    }
    try registry.add(try app("org.network.one", root: [2]))
    var other = try app("org.other.app", root: [2], inNetwork: false)
    other.team = "OTHER"
    try registry.add(other)
    try registry.forgetTeams(ofNetworkRoots: [[2]])
    #expect(try registry.root(of: "TEAM") == nil)
    #expect(try registry.root(of: "OTHER") == [2])
    #expect(try registry.root(of: "THIRD") == [1])
  }
}
