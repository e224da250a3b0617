// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

// What the next holder of a number, or another team, may get by an adoption:
//
// - what the former owner of the home had allowed, added or removed
// - containers whose team is not known any more, because the adoption was killed

/// An adoption that is killed at any moment is done, or not begun, as far as the registry says whose is what.
@Suite(.enabled(if: Program.isRoot, "giving files away needs root")) struct StoppedAdoptionTests {
  /// A number that no account has.
  private static let former: UInt32 = 4_000_000_001
  /// Somebody who has nothing to do with it.
  private static let other: UInt32 = 502

  private let made: TestStore
  private let account: Account
  private let team = Team("TEAM", root: [1])
  private let database: String

  init() throws {
    let fixture = try TestFixture()
    made = fixture.made
    account = fixture.account
    database = made.path + "/state/insula.db"
    var app = try InstalledApp.example(groups: ["group.a"], clouds: ["iCloud.a"])
    app.root = team.root
    _ = try fixture.containers().make(for: app, home: account.name)
  }

  private func sql(_ text: String) throws -> String {
    let result = try Program.run(["sqlite3", database, text])
    try #require(result.status == 0, "\(text): \(result.errors)")
    return result.output
  }

  /// The home, and rows of each kind, are the former owner's.
  private func begin() throws {
    let home = "\(made.path)/tree/Users/\(account.name)"
    try #require(try Program.run(["chown", "-R", "-h", "\(Self.former)", home]).status == 0)
    let rows = [Self.former, Self.other].map { user in
      """
      INSERT OR REPLACE INTO consents VALUES ('org.a', \(user), 'photos', 'TEAM', x'01', 1, 1);
      INSERT OR REPLACE INTO openers VALUES (\(user), 'public.text', 'org.a', 'TEAM', x'01');
      INSERT OR REPLACE INTO grants
        (id, identifier, user, team, path, writable, directory, inode, handle, created, granted, root)
        VALUES (\(user), 'org.a', \(user), 'TEAM', x'61', 1, 1, 1, x'', 1, 1, x'01');
      INSERT OR REPLACE INTO volumes (id, name, path, inode, handle, created, owner, read_only, added)
        VALUES (\(user), x'61', x'2f61', 1, x'', 1, \(user), 0, 1);
      INSERT OR REPLACE INTO removed (uuid, kind, identifier, user, path, removed)
        VALUES ('removed-\(user)', 'data', 'com.example.editor', \(user), 'Users/\(account.name)/x', 1);
      """
    }
    _ = try sql(rows.joined() + "UPDATE containers SET user = \(Self.former);")
  }

  /// How many rows count for a user.
  private func rows(_ user: UInt32) throws -> [Int] {
    let counts = [
      "containers WHERE user =", "consents WHERE user =", "openers WHERE user =", "grants WHERE user =",
      "volumes WHERE owner =", "removed WHERE deleting = 0 AND user =",
    ]
    let text = try sql(counts.map { "SELECT count(*) FROM \($0) \(user);" }.joined())
    return text.split(separator: "\n").compactMap { Int($0) }
  }

  private func check(_ end: Stopped.End, _ at: String) throws -> Bool {
    let store = try Store(opening: made.path, .exclusive)
    let registry = try Registry(state: store.state, path: made.path + "/state")
    try Homes.endAdoptions(in: store, registry)
    #expect(try registry.adoptions() == [], "\(at)")
    let owner = try store.tree.status(at: "Users/\(account.name)").st_uid
    #expect(owner == account.uid || owner == Self.former, "\(at)")
    #expect(
      try rows(Self.former) == (owner == Self.former ? [3, 1, 1, 1, 1, 1] : [0, 0, 0, 0, 0, 0]), "\(at)")
    #expect(
      try rows(account.uid) == (owner == Self.former ? [0, 0, 0, 0, 0, 0] : [3, 0, 0, 0, 0, 0]), "\(at)")
    #expect(try rows(Self.other) == [0, 1, 1, 1, 1, 1], "\(at)")
    #expect(try registry.containers().allSatisfy { $0.team == team }, "\(at)")
    // Another team gets nothing, even if the registry is lost just now.
    let containers = try Containers(store, registry)
    var strange = try InstalledApp.example(groups: ["group.a"], clouds: ["iCloud.a"])
    strange.root = [2]
    for (kind, identifier) in [
      (ContainerKind.data, strange.identifier), (.group, strange.groups[0]), (.cloud, strange.clouds[0]),
    ] where owner == account.uid {
      guard
        case .containerOfOtherTeam = storeError({
          _ = try containers.make(kind, identifier, for: strange, home: account.name)
        })
      else {
        Issue.record("another team's app got the \(kind) container, \(at)")
        continue
      }
    }
    // It can be done, or done again.
    let homes = try Homes(tree: store.tree, path: made.path + "/tree", mode: store.description.mode)
    _ = try homes.adopt(account.name, in: store)
    #expect(try rows(Self.former) == [0, 0, 0, 0, 0, 0], "\(at)")
    #expect(try rows(account.uid) == [3, 0, 0, 0, 0, 0], "\(at)")
    return owner == account.uid
  }

  /// How many points a whole run has; on a busy machine it is some hundreds more or fewer from run to run.
  private func countStops() throws -> Int {
    try begin()
    let whole = try Program.run([Stopped.path, "\(Int32.max)", "adopt", made.path, account.name])
    try #require(whole.status == 0, "\(whole.errors)")
    let stops = try #require(Int(whole.output.split(separator: "\n").last ?? ""))
    try #require(stops > 200)
    #expect(try check(.done, "the end"))
    return stops
  }

  @Test func nothingCountsForAWrongNumber() throws {
    var seen: Set<Bool> = []
    /// At how many of these points a run was stopped; each run has its own number of them.
    func stop(at points: some Sequence<Int>) throws -> Int {
      var passed = 0
      for point in points {
        try begin()
        let end = try Stopped.run(at: point, ["adopt", made.path, account.name])
        if case .failed(let why) = end { throw MountedStore.Failure(words: why) }
        seen.insert(try check(end, "\(point)"))
        if end == .killed { passed += 1 }
      }
      return passed
    }
    var stops = try countStops()
    #expect(try stop(at: stride(from: 1, to: stops - 200, by: stops / 40)) >= 20)
    // The last part is where the home and the registry change hands.
    var passed = 0
    for _ in 0..<3 where passed < 40 {
      passed = try stop(at: stride(from: stops - 360, to: stops + 40, by: 5))
      if passed < 40 { stops = try countStops() }
    }
    #expect(passed >= 40 && seen == [false, true])
  }
}
