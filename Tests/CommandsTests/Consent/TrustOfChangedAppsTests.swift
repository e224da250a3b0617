// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing
@testable internal import Volume

/// What was decided and granted follows the apps, also for those that run.
struct TrustOfChangedAppsTests {
  private static let user: UInt32 = 4711

  private let temporary: TemporaryDirectory
  private let volume: Volume
  private let views = RunningViews(Budget(Budget.Limits(descriptors: 0)))
  private let registry: Registry
  private let grants: GrantService
  private let consents: ConsentService
  private let launch: AppLaunch

  init() throws {
    temporary = try TemporaryDirectory()
    let path = temporary.appending("store")
    try Store.create(at: path, TestStore.description)
    let store = try Store(opening: path, .exclusive)
    let registry = try Registry(of: store)
    self.registry = registry
    let app = InstalledApp(
      identifier: try #require(AppIdentifier("org.example.player")), user: nil, name: "Player",
      executable: "Player", version: "1", shortVersion: "1.0", team: "TEAM1",
      path: "Applications/Player.app", seal: [], installed: 0)
    try registry.add(app)
    volume = Volume(tree: store.tree, settings: VolumeSettings())
    grants = try GrantService(store, volume) { (_) throws(StoreError) in registry }
    consents = ConsentService(store, volume, views, grants, isReadOnly: false, log: { _ in }) {
      (_) throws(StoreError) in registry
    }
    let texts = Dictionary(uniqueKeysWithValues: PrivacyService.allCases.map { ($0, "Shows it.") })
    launch = AppLaunch(
      app, home: "anna", AppEntitlements(), executable: "Player", privacy: AppPrivacy(texts: texts))
  }

  /// The attack: a user allows everyone's app photos, and installs and removes a copy of their own.
  ///
  /// With that the decision is forgotten, and what runs has them no more; what others have decided stays.
  @Test func decisionsThatGoWithAnAppGoForWhatRuns() throws {
    let neighbour = Self.user + 1
    var running: [View] = []
    defer { for view in running { view.ended() } }
    for user in [Self.user, neighbour] {
      for service in PrivacyService.allCases {
        try consents.decide(.allow, launch.app, for: user, service, by: nil)
      }
      let given = consents.authorized(launch, for: user)
      let view = try grants.view(of: launch.app, for: user, launch.places) {
        consents.places(of: launch, with: given)
      }
      running.append(view)
      let process = try Wakeup()
      views.add(
        RunningView(
          views.number(), launch, user: user, pid: getpid(), SharedFD(try process.fd.duplicated()), view),
        try views.room(for: user))
    }
    let settled = Condition(0)
    consents.settle {
      settled.change { $0 += 1 }
      return true
    }
    let app = launch.app
    let copy = InstalledApp(
      identifier: app.identifier, user: Self.user, name: app.name, executable: app.executable,
      version: app.version, shortVersion: app.shortVersion, team: app.team,
      path: "Users/anna/Applications/Player.app", seal: [], installed: 0)
    try registry.add(copy)
    consents.reconcile()
    #expect(running.map(\.scope.hasPrivatePlaces) == [false, false])
    #expect(settled.withLock { $0 } == 0)
    _ = try registry.remove(app.identifier, of: Self.user, keepingData: false)
    #expect(consents.reconcile() == nil)
    #expect(running.map(\.scope.hasPrivatePlaces) == [true, false])
    #expect(settled.withLock { $0 } == 1)
    // And it has them again when they are allowed again.
    for service in PrivacyService.allCases {
      try consents.decide(.allow, app, for: Self.user, service, by: nil)
    }
    #expect(running.map(\.scope.hasPrivatePlaces) == [false, false])
    // What is forgotten of a third user comes before the change of the app is looked at.
    _ = try registry.remove(app.identifier, of: nil, keepingData: false)
    consents.forget(neighbour + 1)
    #expect(running.map(\.scope.hasPrivatePlaces) == [true, true])
    #expect(consents.reconcile() == nil)
  }

  /// A page costs no more for what is decided beside it: it comes in its order, whatever is decided and taken
  /// back between two of them.
  @Test func pagesAreInOrderWhileOthersDecide() throws {
    for user in UInt32(100)..<400 { _ = try consents.answers.put(.allow, launch.app, user, .photos) }
    func users(after: UInt32?) -> [UInt32] {
      let first = consents.answers.all(of: nil).first { $0.user == after }
      return consents.answers.all(of: nil, after: first.map(ConsentPosition.init)).map(\.user)
    }
    #expect(users(after: nil) == Array(100..<400))
    _ = try consents.answers.put(nil, launch.app, 250, .photos)
    _ = try consents.answers.put(.deny, launch.app, 399, .photos)
    _ = try consents.answers.put(.allow, launch.app, 50, .photos)
    _ = try consents.answers.put(.allow, launch.app, 100, .contacts)
    #expect(users(after: nil) == [50, 100, 100] + (101..<400).filter { $0 != 250 })
    #expect(users(after: 249) == Array(251..<400))
    #expect(consents.answers.all(of: 399).map(\.isAllowed) == [false])
    consents.answers.load()
    #expect(users(after: nil) == [50, 100, 100] + (101..<400).filter { $0 != 250 })
  }

  /// An app of a team's next root comes in the place of the former root's.
  ///
  /// What was granted is that one's for what runs, of every user. What is another team's stays, and so does
  /// what is under a root that never was the team's.
  @Test func grantsFollowTheirTeamWithAnApp() throws {
    let tree = temporary.appending("store/tree/Users/Shared")
    let shared = try TemporaryDirectory.open(tree)
    let teams = [
      Team("TEAM1", root: [1]), Team("TEAM1", root: [3]), Team("TEAM2", root: [1]), Team("TEAM1", root: [1]),
    ]
    for (number, team) in teams.enumerated() {
      try #require(mkdir("\(tree)/\(number)", 0o755) == 0)
      try volume.grant(
        registry.add(
          GrantRecord(
            identifier: launch.app.identifier, user: Self.user + UInt32(number / 3), team: team,
            path: GrantPath.names(Array("Users/Shared/\(number)".utf8)), isWritable: true, isDirectory: true,
            identity: try ObjectIdentity(of: "\(number)", in: shared.fd), granted: 1)))
    }
    try registry.pin("TEAM1", to: [1])
    try registry.pin("TEAM1", to: [9])
    grants.reconcile()
    let now = volume.granted.inOrder { $0.id < $1.id }.map(\.team)
    #expect(now == [Team("TEAM1", root: [9]), teams[1], teams[2], Team("TEAM1", root: [9])])
  }
}
