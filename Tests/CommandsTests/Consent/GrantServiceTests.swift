// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What requests about grants cost, and who is told of them: two apps of two users each.
struct GrantServiceTests {
  private final class Told: Sendable {
    let apps = Mutex<[Set<AppOfUser>]>([])
  }

  private static let users: [UInt32] = [4711, 4712]
  private static let count: Int64 = 500

  private let temporary: TemporaryDirectory
  private let volume: Volume
  private let grants: GrantService
  private let apps: [AppIdentifier]
  private let told = Told()

  /// Each app of each user has been granted five hundred things.
  init() throws {
    temporary = try TemporaryDirectory()
    let path = temporary.appending("store")
    try Store.create(at: path, TestStore.description)
    let store = try Store(opening: path, .exclusive)
    let registry = try Registry(of: store)
    apps = try ["org.example.one", "org.example.two"].map { try #require(AppIdentifier($0)) }
    volume = Volume(tree: store.tree, settings: VolumeSettings())
    grants = try GrantService(
      store, volume, changed: { [told] apps in told.apps.withLock { $0.append(apps) } }
    ) { _ throws(StoreError) in registry }
    var id: Int64 = 0
    for _ in 0..<Self.count {
      for (app, user) in apps.flatMap({ app in Self.users.map { (app, $0) } }) {
        id += 1
        let record = GrantRecord(
          id: id, identifier: app, user: user, team: Team("T", root: nil),
          path: GrantPath.names(Array("Users/Shared/\(id)".utf8)), isWritable: false, isDirectory: false,
          identity: ObjectIdentity(inode: UInt64(id), handle: [8, 0, 1], created: 0), granted: 0)
        volume.grants.put(Grants.Entry(record: record, steps: [], previousName: nil))
      }
    }
  }

  private func installed(_ identifier: AppIdentifier) -> InstalledApp {
    InstalledApp(
      identifier: identifier, user: nil, name: "App", executable: "App", version: "1", shortVersion: "1",
      team: "T", path: "Applications/App.app", seal: [], installed: 0, groups: [], clouds: [])
  }

  private func version(_ identifier: AppIdentifier, of user: UInt32) -> String {
    grants.version(installed(identifier), of: user)
  }

  private var toldApps: [Set<AppOfUser>] { told.apps.withLock { $0 } }

  /// How many records something reads.
  private func reads(_ body: () throws -> Void) rethrows -> Int {
    let before = volume.grants.recordsRead.load(ordering: .relaxed)
    try body()
    return volume.grants.recordsRead.load(ordering: .relaxed) - before
  }

  /// All pages of something, each of which reads a hundred records.
  private func pages(_ page: (Int64) -> GrantPage) -> [GrantPage] {
    var (all, after): ([GrantPage], Int64?) = ([], 0)
    while let number = after, all.count < 100 {
      let count = reads { all.append(page(number)) }
      #expect(count == 100)
      after = all.last?.next
    }
    return all
  }

  private func perform(_ request: GrantRequest, by user: UInt32) throws(ControlFailure) -> [GrantedPlace] {
    try grants.perform(request, by: CallerIdentity(uid: user, gid: user, groups: []))
  }

  /// Others move what was granted of theirs: what they call what is theirs alone nobody is told.
  @Test(.enabled(if: Program.isRoot, "it takes files of several users"))
  func whatIsOutOfReachIsNotTold() throws {
    let (app, user, other) = (apps[0], Self.users[0], Self.users[1])
    let tree = "store/tree/"
    for (path, owner, mode) in [
      ("Users/other", other, 0o755), ("Users/other/Documents", other, 0o700),
      ("Users/other/Documents/Secret", other, 0o755), ("Users/other/Documents/Secret/Inner", other, 0o755),
      ("Users/Shared/team", 0, 0o770), ("Users/Shared/team/plan", 0, 0o755),
    ] as [(String, UInt32, mode_t)] {
      let made = try temporary.makeDirectory(tree + path)
      try #require(chown(made, owner, path.hasSuffix("team") ? 5000 : owner) == 0 && chmod(made, mode) == 0)
    }
    let paths = ["Users/other/Documents/Secret/Inner", "Users/Shared/team/plan"]
    var id: Int64 = 10_000
    for (path, user) in paths.flatMap({ path in Self.users.map { (path, $0) } }) {
      id += 1
      let record = GrantRecord(
        id: id, identifier: app, user: user, team: Team("T", root: nil),
        path: GrantPath.names(Array(path.utf8)), isWritable: false, isDirectory: true,
        identity: ObjectIdentity(inode: UInt64(id), handle: [8, 0, 1], created: 0), granted: 0)
      volume.grants.put(Grants.Entry(record: record, steps: [], previousName: nil))
    }
    func caller(_ user: UInt32, _ groups: [UInt32] = []) -> CallerIdentity {
      CallerIdentity(uid: user, gid: user, groups: groups)
    }
    func listed(_ user: UInt32, for caller: CallerIdentity) -> [GrantedPlace] {
      grants.list(app, of: user, after: 10_000, for: caller).places
    }
    let found = listed(user, for: caller(user))
    #expect(found.map(\.path) == ["Users/other/Documents", "Users/Shared/team"])
    #expect(found.allSatisfy { $0.isOutOfReach == true && $0.isMissing })
    let member = listed(user, for: caller(user, [5000]))
    #expect(member.map(\.path) == ["Users/other/Documents", paths[1]])
    #expect(member.map(\.isOutOfReach) == [true, nil] && member.map(\.isMissing) == [true, false])
    // In the own home, and for root, all is told.
    #expect(listed(other, for: caller(other)).map(\.path) == [paths[0], "Users/Shared/team"])
    #expect(listed(user, for: caller(0)).map(\.path) == paths)
    // An app can't use it anyway.
    let installed = installed(app)
    #expect(grants.own(installed, of: user, after: 10_000).places.isEmpty)
    let own = grants.own(installed, of: user, after: 10_000) { $0 == 5000 ? .member : .notMember }
    #expect(own.places.map(\.path) == [paths[1]])
    #expect(grants.own(installed, of: other, after: 10_000).places.map(\.path) == [paths[0]])
    // What was there before is told as ever.
    #expect(grants.own(installed, of: user, after: 0).places.count == 100)
    // It can be taken back as it is listed, and the answer says no more.
    let revoked = try perform(.revoke(app, path: "Users/other/Documents", user: nil), by: user)
    #expect(revoked.map(\.path) == ["Users/other/Documents"])
    #expect(listed(user, for: caller(0)).map(\.path) == [paths[1]])
    #expect(listed(other, for: caller(0)).map(\.path) == paths)
  }

  /// The same in one's own home, where others may have something of their own.
  ///
  /// Paths are told whole or not whatever others are asked for with them: they are looked at in their order.
  @Test(.enabled(if: Program.isRoot, "it takes files of several users"))
  func whatIsOthersInTheOwnHomeIsNotTold() throws {
    let (app, user, other) = (apps[0], Self.users[0], Self.users[1])
    var chain = ["Users/me", "Users/me/deep"]
    for number in 0..<40 { chain.append("\(chain[chain.count - 1])/d\(number)") }
    let deep = chain[chain.count - 1]
    let home = try temporary.makeDirectory("store/tree/Users/me")
    try #require(chown(home, user, user) == 0)
    for path in chain.dropFirst() { try temporary.makeDirectory("store/tree/" + path) }
    for (path, owner, mode) in [
      ("Users/me/Drop", user, 0o777), ("Users/me/Drop/box", other, 0o700),
      ("Users/me/Drop/box/Secret", other, 0o755), ("Users/me/Drop/open", other, 0o755),
      ("Users/me/Drop/open/plan", other, 0o755), ("Users/me/shut", user, 0o000),
      ("Users/me/shut/letter", user, 0o755), (deep + "/a", other, 0o755),
      (deep + "/b", other, 0o700), (deep + "/b/c", other, 0o755),
    ] as [(String, UInt32, mode_t)] {
      let made = try temporary.makeDirectory("store/tree/" + path)
      try #require(chown(made, owner, owner) == 0 && chmod(made, mode) == 0)
    }
    let told = [
      "Users/me/Drop/box/Secret": "Users/me/Drop/box", "Users/me/Drop/open/plan": nil,
      "Users/me/shut/letter": nil, "\(deep)/b/c": "\(deep)/b", "\(deep)/a": nil, "\(deep)/b": nil,
      "\(deep)/gone": nil,
    ]
    // In none of the orders that sort them.
    let paths = [
      "\(deep)/b/c", "Users/me/Drop/open/plan", "\(deep)/a", "Users/me/Drop/box/Secret", "\(deep)/gone",
      "Users/me/shut/letter", "\(deep)/b",
    ]
    for (index, path) in paths.enumerated() {
      let record = GrantRecord(
        id: 10_001 + Int64(index), identifier: app, user: user, team: Team("T", root: nil),
        path: GrantPath.names(Array(path.utf8)), isWritable: false, isDirectory: true,
        identity: ObjectIdentity(inode: 1, handle: [8, 0, 1], created: 0), granted: 0)
      volume.grants.put(Grants.Entry(record: record, steps: [], previousName: nil))
    }
    let caller = CallerIdentity(uid: user, gid: user, groups: [])
    let found = grants.list(app, of: user, after: 10_000, for: caller).places
    #expect(found.map(\.path) == paths.map { (told[$0] ?? nil) ?? $0 })
    #expect(found.map(\.isOutOfReach) == paths.map { (told[$0] ?? nil) == nil ? nil : true })
    #expect(found.map(\.isMissing) == paths.map { (told[$0] ?? nil) != nil || $0.hasSuffix("gone") })
    let own = grants.own(installed(app), of: user, after: 10_000).places
    #expect(own.map(\.path) == paths.filter { (told[$0] ?? nil) == nil })
    // By what is told of it one of them is taken back, and what is at that place itself with it.
    let revoked = try perform(.revoke(app, path: "\(deep)/b", user: nil), by: user)
    #expect(revoked.map(\.path) == ["\(deep)/b", "\(deep)/b"])
    #expect(grants.list(app, of: user, after: 10_000, for: caller).places.count == 5)
  }

  /// A start that was called off takes nothing back from the app that has its place by now.
  @Test func startThatWasCalledOffTakesNothingBack() throws {
    let app = InstalledApp(
      identifier: apps[0], user: nil, name: "App", executable: "App", version: "1", shortVersion: "1",
      team: "OTHER", path: "Applications/App.app", seal: [], installed: 0)
    let numbers = Set(volume.grantedNumbers)
    var failure: AppFailure?
    do throws(AppFailure) {
      _ = try grants.view(of: app, for: Self.users[0], [], mayBegin: { false })
    } catch {
      failure = error
    }
    guard case .busy = failure else {
      Issue.record("it has a view: \(String(describing: failure))")
      return
    }
    #expect(Set(volume.grantedNumbers) == numbers && toldApps.isEmpty)
  }

  /// The attack: whoever was granted a great deal has it read again and again on the thread of all apps.
  @Test func versionsAndPagesCostNoMoreThanThemselves() throws {
    let (app, user) = (apps[0], Self.users[0])
    let asking = reads { for _ in 0..<100 { _ = version(app, of: user) } }
    #expect(asking == 0)
    let current = version(app, of: user)
    let own = pages { grants.own(installed(app), of: user, after: $0) }
    #expect(own.count == 5 && own.allSatisfy { $0.version == current })
    let places = own.flatMap(\.places)
    #expect(places.count == 500 && Set(places.map(\.path)).count == 500)
    #expect(places.allSatisfy { $0.identifier == app.text && $0.user == user })
    // The same for who lists those of one user, or of one app.
    let lists: [(AppIdentifier?, UInt32?, Int)] = [
      (nil, user, 1000), (app, user, 500), (app, nil, 1000), (nil, nil, 2000),
    ]
    for (identifier, user, count) in lists {
      let places = pages { grants.list(identifier, of: user, after: $0) }.flatMap(\.places)
      #expect(places.count == count && places.allSatisfy { user == nil || $0.user == user })
    }
    let spelt = try #require(AppIdentifier("ORG.example.two"))
    #expect(grants.list(spelt, of: user).places.count == 100)
  }

  /// The attack: requests that fail, or that are about one's own apps, have everybody's calls asked.
  @Test func onlyAppsAreToldWhoseGrantsHaveChanged() throws {
    let (one, two) = (Self.users[0], Self.users[1])
    for identifier in [apps[0], nil] {
      let count = reads {
        #expect(throws: ControlFailure.self) {
          try perform(.revoke(identifier, path: "nothing", user: one), by: one)
        }
      }
      #expect(count == (identifier == nil ? 1000 : 500), "nobody else's are read")
    }
    #expect(throws: ControlFailure.self) { try perform(.revoke(apps[0], path: nil, user: two), by: one) }
    grants.volumeIsEjected(GrantPath.names(Array("Volumes/none".utf8)))
    try grants.teamIsAssigned("none")
    #expect(toldApps.isEmpty)
    let others = [(apps[0], two), (apps[1], one), (apps[1], two)].map { version($0, of: $1) }
    #expect(try perform(.revoke(apps[0], path: "Users/Shared/1", user: one), by: one).count == 1)
    #expect(toldApps == [[AppOfUser(apps[0], one)]])
    #expect(others == [(apps[0], two), (apps[1], one), (apps[1], two)].map { version($0, of: $1) })
    _ = try perform(.revoke(nil, path: nil, user: two), by: two)
    #expect(toldApps.dropFirst() == [Set(apps.map { AppOfUser($0, two) })])
    // Those of which the registry knows nothing go, and are told.
    grants.reconcile()
    #expect(toldApps.dropFirst(2) == [Set(apps.map { AppOfUser($0, one) })])
    grants.reconcile()
    #expect(toldApps.count == 3)
  }
}
