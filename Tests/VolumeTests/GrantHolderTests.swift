// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

@testable internal import Volume

/// Apps of one identifier run for two users: a team's, another one's of the same name under another root, and
/// another team's.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct GrantHolderTests {
  private struct Running {
    let words: String
    let team: Team
    let user: UInt32
    let view: View
  }

  private static let current = Team("TEAM", root: [9])
  private static let former = Team("TEAM", root: [1])
  private static let unknown = Team("TEAM", root: nil)
  private static let other = Team("OTHER", root: [9])
  private static let users: [UInt32] = [54321, 54322]

  private let tree: Tree
  private let app: AppIdentifier
  private let running: [Running]

  init() throws {
    tree = try Tree()
    let app = try #require(AppIdentifier("org.example.editor"))
    self.app = app
    var running: [Running] = []
    // Of each team's app two views run for each user.
    for team in [Self.current, Self.former, Self.unknown, Self.other] {
      for user in Self.users + Self.users {
        let view = try tree.volume.view(of: app, team, user: user, [])
        running.append(Running(words: "\(team.words) of \(user)", team: team, user: user, view: view))
      }
    }
    self.running = running
    try tree.view.makeDirectory("Users/Shared/d", mode: 0o777)
    for name in ["d/f", "d/own"] { try tree.view.make("Users/Shared/\(name)", mode: 0o666) }
  }

  private static func names(_ name: String) -> [[UInt8]] {
    GrantPath.names(Array("Users/Shared/\(name)".utf8))
  }

  private func grant(_ id: Int64, _ name: String, to team: Team, _ user: UInt32) throws {
    let path = Self.names(name)
    let chosen = try tree.volume.choose(
      path, by: Credentials(uid: 0, gid: 0), isMember: { _ in .notMember }, writing: false)
    try tree.volume.grant(
      GrantRecord(
        id: id, identifier: app, user: user, team: team, path: path, isWritable: false, isDirectory: false,
        identity: chosen.identity, granted: 0))
  }

  /// Those that have a file: `writing` too, if so.
  private func expect(_ name: String, in holders: [(Team, UInt32)], writing: Bool = false) {
    for app in running {
      let scope = app.view.scope.value
      let reach = scope.reach(of: scope.position(at: Self.names(name)))
      let isHolder = holders.contains { $0.0 == app.team && $0.1 == app.user }
      #expect(reach.contains(.read) == isHolder, "\(name): \(app.words)")
      #expect(reach.contains(.write) == (isHolder && writing), "\(name): \(app.words)")
    }
  }

  private func end() { for app in running { app.view.ended() } }

  @Test func grantIsForOneTeamsApp() throws {
    defer { end() }
    let (user, next) = (Self.users[0], Self.users[1])
    try grant(1, "d/f", to: Self.current, user)
    expect("d/f", in: [(Self.current, user)])
    _ = tree.volume.changeGrant(1, isWritable: true)
    expect("d/f", in: [(Self.current, user)], writing: true)
    try tree.view.rename("Users/Shared/d", to: "Users/Shared/e")
    expect("e/f", in: [(Self.current, user)], writing: true)
    expect("d/f", in: [])
    // A view that begins now.
    let late = try tree.volume.view(of: app, Self.former, user: user, [])
    defer { late.ended() }
    #expect(late.scope.value.reach(of: late.scope.value.position(at: Self.names("e/f"))).isEmpty)
    // Others have grants of the same file, of which each is taken back for itself.
    try grant(2, "e/f", to: Self.former, user)
    try grant(3, "e/f", to: Self.current, next)
    #expect(tree.volume.granted(to: app, of: user).map(\.id) == [1, 2])
    #expect(numbers(Self.former, user) == [2])
    #expect(tree.volume.granted(to: app, of: user, at: Self.names("e/f")).map(\.id) == [1, 2])
    tree.volume.revokeGrants([1])
    expect("e/f", in: [(Self.former, user), (Self.current, next)])
  }

  private func numbers(_ team: Team, _ user: UInt32) -> [Int64] {
    tree.volume.grantNumbers(to: app, of: team, user, after: 0, limit: .max)
  }

  /// What was granted to two teams' apps stays two grants when one file takes the other's name.
  @Test func grantsOfTwoTeamsAreNotUnited() throws {
    defer { end() }
    let user = Self.users[0]
    try grant(1, "d/f", to: Self.current, user)
    try grant(2, "d/own", to: Self.former, user)
    _ = tree.volume.changeGrant(2, isWritable: true)
    try tree.view.rename("Users/Shared/d/own", to: "Users/Shared/d/f")
    #expect(tree.volume.granted([1, 2]).map(\.isWritable) == [false, true])
    for app in running where app.team == Self.current && app.user == user {
      let scope = app.view.scope.value
      let reach = scope.reach(of: scope.position(at: Self.names("d/f")))
      #expect(!reach.contains(.write), "\(app.words)")
    }
  }

  /// An administrator names another root for a team: its grants go from the apps under the former ones to
  /// those under that root, also where both run.
  @Test func grantsGoToTheTeamsOtherRoot() throws {
    defer { end() }
    let (user, next) = (Self.users[0], Self.users[1])
    try grant(1, "d/f", to: Self.former, user)
    try grant(2, "d/f", to: Self.unknown, next)
    try grant(3, "d/own", to: Self.other, user)
    tree.volume.changeTeams(of: [1: Self.current, 2: Self.current])
    expect("d/f", in: [(Self.current, user), (Self.current, next)])
    expect("d/own", in: [(Self.other, user)])
    #expect(numbers(Self.current, user) == [1])
    #expect(numbers(Self.former, user) == [])
    tree.volume.revokeGrants([1, 2])
    expect("d/f", in: [])
  }
}
