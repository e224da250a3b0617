// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

@testable internal import Volume

/// In a store that ignores case a grant follows its name in every spelling.
@Suite(.enabled(if: Program.isRoot, "acting as several users needs root"))
struct SpelledGrantTests {
  private static let user: UInt32 = 54321
  private let tree: Tree
  private let app: AppIdentifier
  private let team = Team("TEAM", root: [9])
  private let running: View

  init() throws {
    tree = try Tree { $0.ignoresCase = true }
    app = try #require(AppIdentifier("org.example.editor"))
    running = try tree.volume.view(of: app, team, user: Self.user, [])
    for name in ["d", "d/private"] { try tree.view.makeDirectory("Users/Shared/\(name)", mode: 0o777) }
  }

  private static func names(_ name: String) -> [[UInt8]] {
    GrantPath.names(Array("Users/Shared/\(name)".utf8))
  }

  private func record(_ id: Int64, _ name: String, isDirectory: Bool = false) throws -> GrantRecord {
    let path = tree.volume.storedPath(Self.names(name), for: Self.user)
    let chosen = try tree.volume.choose(
      path, by: Credentials(uid: 0, gid: 0), isMember: { _ in .notMember }, writing: false)
    return GrantRecord(
      id: id, identifier: app, user: Self.user, team: team, path: path, isWritable: false,
      isDirectory: isDirectory, identity: chosen.identity, granted: 0)
  }

  private func reaches(_ name: String, in view: View) -> Bool {
    let scope = view.scope.value
    return scope.reach(of: scope.position(at: Self.names(name))).contains(.read)
  }

  private func expect(_ paths: [String], location: SourceLocation = #_sourceLocation) {
    #expect(tree.volume.granted.map(\.path) == paths.map(Self.names), sourceLocation: location)
    #expect(tree.volume.areThere(tree.volume.granted).allSatisfy { $0 }, sourceLocation: location)
  }

  /// A program saves a file by making it anew in another spelling, and its user moves that away.
  @Test(arguments: ["REPORT", "report"], [false, true])
  func aFileIsMadeAnew(spelling: String, byRename: Bool) throws {
    defer { running.ended() }
    try tree.view.make("Users/Shared/d/report", mode: 0o666)
    try tree.volume.grant(record(1, "D/Report"))
    expect(["d/report"])
    try tree.view.remove("Users/Shared/d/report")
    if byRename {
      try tree.view.make("Users/Shared/d/new", mode: 0o666)
      try tree.view.rename("Users/Shared/d/new", to: "Users/Shared/d/\(spelling)")
    } else {
      try tree.view.make("Users/Shared/d/\(spelling)", mode: 0o666)
    }
    expect(["d/\(spelling)"])
    #expect(reaches("d/rePort", in: running))
    try tree.view.rename("Users/Shared/d/\(spelling)", to: "Users/Shared/d/private/old")
    try tree.view.make("Users/Shared/d/report", mode: 0o666)
    expect(["d/private/old"])
    #expect(reaches("d/private/OLD", in: running) && !reaches("d/report", in: running))
  }

  /// The same of a folder, with what was granted in it; two apps' grants follow.
  @Test func aFolderIsMadeAnew() throws {
    defer { running.ended() }
    try tree.view.makeDirectory("Users/Shared/d/Work", mode: 0o777)
    try tree.view.make("Users/Shared/d/Work/page", mode: 0o666)
    try tree.volume.grant(record(1, "d/Work", isDirectory: true))
    try tree.volume.grant(record(2, "d/work/PAGE"))
    try tree.view.remove("Users/Shared/d/Work/page")
    try tree.view.remove("Users/Shared/d/Work", directory: true)
    try tree.view.makeDirectory("Users/Shared/d/WORK", mode: 0o777)
    try tree.view.make("Users/Shared/d/WORK/Page", mode: 0o666)
    expect(["d/WORK", "d/WORK/Page"])
    try tree.view.rename("Users/Shared/d/WORK", to: "Users/Shared/d/Archive")
    try tree.view.makeDirectory("Users/Shared/d/Work", mode: 0o777)
    expect(["d/Archive", "d/Archive/Page"])
    #expect(reaches("d/Archive/x", in: running) && !reaches("d/work/page", in: running))
  }

  /// What was spelled otherwise when an earlier daemon ran.
  @Test func anotherSpellingIsLoaded() throws {
    defer { running.ended() }
    try tree.view.make("Users/Shared/d/report", mode: 0o666)
    var records = try [record(1, "d/report"), record(2, "d/report")]
    records[1].isWritable = true
    records[0].path = Self.names("D/REPORT")
    records[0].identity = ObjectIdentity(inode: 0, handle: [], created: 0)
    tree.volume.loadGrants(records)
    #expect(tree.volume.granted.map(\.path) == [Self.names("d/report")], "they are of one place")
    #expect(tree.volume.granted.map(\.isWritable) == [true])
  }
}
