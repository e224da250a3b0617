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

/// What is decided while an app starts or ends.
struct ConsentServiceTests {
  private static let user: UInt32 = 4711

  private let temporary: TemporaryDirectory
  private let budget = Budget(Budget.Limits(descriptors: 0))
  private let volume: Volume
  private let views: RunningViews
  private let grants: GrantService
  private let consents: ConsentService
  private let launch: AppLaunch
  /// Whether nothing can be recorded.
  private let isFull = Condition(false)

  init() throws {
    temporary = try TemporaryDirectory()
    let path = temporary.appending("store")
    try Store.create(at: path, TestStore.description)
    let store = try Store(opening: path, .exclusive)
    let registry = try Registry(of: store)
    let app = InstalledApp(
      identifier: try #require(AppIdentifier("org.example.player")), user: nil, name: "Player",
      executable: "Player", version: "1", shortVersion: "1.0", team: "TEAM1",
      path: "Applications/Player.app", seal: [], installed: 0)
    try registry.add(app)
    volume = Volume(tree: store.tree, settings: VolumeSettings())
    views = RunningViews(budget)
    let isFull = isFull
    let source: GrantService.RegistrySource = { (isWriting) throws(StoreError) in
      guard isWriting, isFull.withLock({ $0 }) else { return registry }
      throw .registryFailed(doing: "change", path: "registry", message: "the disk is full")
    }
    grants = try GrantService(store, volume, registry: source)
    consents = ConsentService(
      store, volume, views, grants, isReadOnly: false, log: { _ in }, registry: source)
    launch = Self.launch(of: app)
  }

  /// Of an app that has said why it asks.
  private static func launch(
    of app: InstalledApp, _ entitlements: AppEntitlements = AppEntitlements()
  ) -> AppLaunch {
    let texts = Dictionary(uniqueKeysWithValues: PrivacyService.allCases.map { ($0, "Shows it.") })
    return AppLaunch(
      app, home: "anna", entitlements, executable: "Player", privacy: AppPrivacy(texts: texts))
  }

  private func decide(_ decision: ConsentDecision, _ services: [PrivacyService]) throws {
    for service in services { try consents.decide(decision, launch.app, for: Self.user, service, by: nil) }
  }

  /// Makes a view with what counts at this moment.
  private func view() throws -> (view: View, given: Set<PrivacyService>) {
    let given = consents.authorized(launch, for: Self.user)
    let view = try grants.view(of: launch.app, for: Self.user, launch.places) {
      consents.places(of: launch, with: given)
    }
    return (view, given)
  }

  private func add(_ view: View, process: consuming OwnedFD) throws {
    let running = RunningView(
      views.number(), launch, user: Self.user, pid: getpid(), SharedFD(process), view)
    views.add(running, try views.room(for: Self.user))
  }

  /// A process that runs, or with nobody at the other end one that has ended.
  private func process(ended: Bool) throws -> OwnedFD {
    let process = try Wakeup()
    if ended { process.ring() }
    return try process.fd.duplicated()
  }

  /// A decision between the moments when the view is made and when it is known that it runs.
  @Test func decisionsReachAppsThatAreAboutToRun() throws {
    try decide(.allow, PrivacyService.allCases)
    let (view, given) = try view()
    defer { view.ended() }
    #expect(!view.scope.hasPrivatePlaces)
    try decide(.deny, [.contacts])
    try add(view, process: process(ended: false))
    consents.began(launch, for: Self.user, with: given)
    #expect(view.scope.hasPrivatePlaces)
    try decide(.allow, [.contacts])
    #expect(!view.scope.hasPrivatePlaces)
  }

  /// An administrator names another root for a team, and its app is still the one that the former root has
  /// signed: what was allowed is the next version's, and a refusal holds for both.
  @Test func refusalsHoldUnderBothRootsOfATeam() throws {
    let registry = try #require(try consents.registry(true))
    let (former, current, forged) = (try painter([1]), try painter([9]), try painter([3]))
    let users = [Self.user, Self.user + 1]
    func states(_ app: InstalledApp, _ service: PrivacyService) -> [ConsentState] {
      users.map { consents.answers.state(app, $0, service) }
    }
    try registry.add(former)
    // The first has decided before, and the second decides after.
    try consents.decide(.deny, former, for: users[0], .photos, by: nil)
    try consents.decide(.allow, former, for: users[0], .contacts, by: nil)
    try registry.pin("TEAM2", to: [1])
    try registry.pin("TEAM2", to: [9])
    consents.teamIsAssigned([])
    try consents.decide(.deny, former, for: users[1], .photos, by: nil)
    #expect(states(former, .photos) == [.denied, .denied])
    #expect(states(former, .contacts) == [.notDetermined, .notDetermined])
    #expect(states(forged, .photos) == [.notDetermined, .notDetermined])
    #expect(consents.page(of: users[0], after: nil).map(\.state) == [.denied])
    try registry.update(current)
    consents.reconcile()
    #expect(states(current, .photos) == [.denied, .denied])
    #expect(states(current, .contacts) == [.authorized, .notDetermined])
    #expect(states(forged, .photos) == [.notDetermined, .notDetermined])
  }

  /// An app of everyone's, as a root has signed it.
  private func painter(_ root: [UInt8]) throws -> InstalledApp {
    InstalledApp(
      identifier: try #require(AppIdentifier("org.example.painter")), user: nil, name: "Painter",
      executable: "Painter", version: "1", shortVersion: "1.0", team: "TEAM2", root: root,
      path: "Applications/Painter.app", seal: [], installed: 0)
  }

  /// A refusal that can't be recorded before the app is updated to the new root holds for that version; or
  /// what was allowed earlier would count again.
  @Test func owedRefusalsFollowATeamToItsNewRoot() throws {
    let registry = try #require(try consents.registry(true))
    let (former, current) = (try painter([1]), try painter([9]))
    let users = [Self.user, Self.user + 1]
    try registry.add(former)
    for user in users { try consents.decide(.allow, former, for: user, .photos, by: nil) }
    isFull.change { $0 = true }
    for user in users {
      #expect(throws: ControlFailure.self) {
        try consents.decide(.deny, former, for: user, .photos, by: nil)
      }
    }
    try registry.pin("TEAM2", to: [1])
    try registry.pin("TEAM2", to: [9])
    consents.teamIsAssigned([])
    try registry.update(current)
    isFull.change { $0 = false }
    consents.reconcile()
    #expect(users.map { consents.answers.state(current, $0, .photos) } == [.denied, .denied])
    let recorded = try registry.consents().filter { $0.identifier == current.identifier }
    #expect(recorded.map(\.isAllowed) == [false, false])
    #expect(recorded.map(\.team) == [current.signer, current.signer])
  }

  /// It has none of it any more while it runs.
  @Test func appOfTheFormerRootLosesWhatWasAllowed() throws {
    try decide(.allow, PrivacyService.allCases)
    let (view, _) = try view()
    defer { view.ended() }
    try add(view, process: process(ended: false))
    #expect(!view.scope.hasPrivatePlaces)
    try #require(try consents.registry(true)).pin("TEAM1", to: [9])
    consents.teamIsAssigned(views.all())
    #expect(view.scope.hasPrivatePlaces)
  }

  /// A user's own copy of an app may spell its identifier otherwise, and be the one that is asked about.
  @Test func decisionsReachOtherSpellingsOfTheApp() throws {
    try decide(.allow, PrivacyService.allCases)
    let (view, _) = try view()
    defer { view.ended() }
    try add(view, process: process(ended: false))
    #expect(!view.scope.hasPrivatePlaces)
    let app = launch.app
    let copy = InstalledApp(
      identifier: try #require(AppIdentifier("org.example.PLAYER")), user: Self.user, name: app.name,
      executable: app.executable, version: app.version, shortVersion: app.shortVersion, team: app.team,
      path: "Users/anna/Applications/Player.app", seal: [], installed: 0)
    try #require(try consents.registry(true)).add(copy)
    try consents.decide(.deny, copy, for: Self.user, .contacts, by: nil)
    #expect(view.scope.hasPrivatePlaces)
    let other = try #require(AppIdentifier("org.example.players"))
    #expect(views.all(of: copy.identifier).count == 1 && views.all(of: other).isEmpty)
  }

  /// The process that has waited for an app has ended, and somebody may have its view still.
  @Test func decisionsReachViewsThatAreAboutToEnd() throws {
    try decide(.allow, PrivacyService.allCases)
    let (view, _) = try view()
    defer { view.ended() }
    try add(view, process: process(ended: true))
    #expect(views.all().isEmpty)
    try decide(.deny, [.contacts])
    #expect(view.scope.hasPrivatePlaces)
  }

  /// However many have decided, root sees all of it, in parts.
  @Test func allDecisionsAreToldInParts() throws {
    let others: [UInt32] = Array(10_000..<11_100)
    for user in others {
      try #require(
        try consents.answers.put(.allow, launch.app, user, user % 2 == 0 ? .photos : .contacts) == nil)
    }
    var parts: [Int] = []
    let all = ConsentRequest.all { after in
      let part = consents.page(of: nil, after: after)
      parts.append(part.count)
      return part
    }
    #expect(parts == [1000, 100])
    #expect(all.map(\.user) == others)
    let one = ConsentRequest.all { consents.page(of: 10_007, after: $0) }
    #expect(one.map(\.service) == [.contacts] && one.map(\.user) == [10_007])
    // Those of another team's app take nobody's place.
    let sql = """
      INSERT INTO consents (identifier, user, service, team, allowed, changed)
      SELECT identifier, user, 'reminders', 'TEAM2', 0, 0 FROM consents WHERE user < 10200
      """
    let filled = try Program.run(["sqlite3", temporary.appending("store/state/insula.db"), sql])
    try #require(filled.status == 0, "\(filled.errors)")
    consents.reconcile()
    #expect(consents.answers.all(of: nil).count == others.count + 200)
    #expect(ConsentRequest.all { consents.page(of: nil, after: $0) }.count == others.count)
  }

  /// The attack: a user allows an app something while they remove it, and installs it again.
  ///
  /// The decision has looked for the app before, and is noted after that.
  @Test(arguments: [ConsentDecision.allow, .deny])
  func decisionThatComesTooLateCountsForNothing(decision: ConsentDecision) throws {
    let registry = try #require(try consents.registry(true))
    let app = launch.app
    _ = try registry.remove(app.identifier, of: nil, keepingData: false)
    #expect(throws: ControlFailure(StoreError.noApp(identifier: app.identifier.text))) {
      try consents.decide(decision, app, for: Self.user, .photos, by: nil)
    }
    try registry.add(app)
    #expect(consents.answers.state(app, Self.user, .photos) == .notDetermined)
    // What could not be recorded would be recorded here.
    consents.reconcile()
    #expect(consents.answers.state(app, Self.user, .photos) == .notDetermined)
    #expect(try registry.consents() == [])
  }

  /// Apps go, and with them what they were granted, whatever other users' grants are like.
  @Test func grantsGoWithTheirAppBesideOnesThatCanNotBeRead() throws {
    let registry = try #require(try consents.registry(true))
    let tree = temporary.appending("store/tree")
    for name in ["Shared/a", "Shared/b"] { try #require(mkdir("\(tree)/Users/\(name)", 0o755) == 0) }
    for (user, name) in [(Self.user, "a"), (Self.user + 1, "b")] {
      let shared = try TemporaryDirectory.open("\(tree)/Users/Shared")
      let identity = try ObjectIdentity(of: name, in: shared.fd)
      let record = GrantRecord(
        identifier: launch.app.identifier, user: user, team: launch.app.signer,
        path: GrantPath.names(Array("Users/Shared/\(name)".utf8)), isWritable: true, isDirectory: true,
        identity: identity, granted: 1)
      try volume.grant(registry.add(record))
    }
    #expect(volume.grantedNumbers.count == 2)
    let damaged = try Program.run(
      [
        "sqlite3", temporary.appending("store/state/insula.db"),
        "UPDATE grants SET user = -5 WHERE user <> \(Self.user)",
      ])
    try #require(damaged.status == 0, "\(damaged.errors)")
    try registry.removeGrants(volume.granted.filter { $0.user == Self.user }.map(\.id))
    grants.reconcile()
    #expect(volume.granted.map(\.user) == [Self.user + 1])
  }

  /// An app is told of what was granted to its own team's app alone, also where another one has its
  /// identifier and its user.
  @Test func appsAreToldOfTheirOwnGrants() throws {
    let tree = temporary.appending("store/tree/Users/Shared")
    var apps = [launch.app, launch.app]
    (apps[0].root, apps[1].root) = ([1], [9])
    let shared = try TemporaryDirectory.open(tree)
    for (number, app) in apps.enumerated() {
      try #require(mkdir("\(tree)/\(number)", 0o755) == 0)
      let identity = try ObjectIdentity(of: "\(number)", in: shared.fd)
      try volume.grant(
        GrantRecord(
          id: Int64(number + 1), identifier: app.identifier, user: Self.user, team: app.signer,
          path: GrantPath.names(Array("Users/Shared/\(number)".utf8)), isWritable: false, isDirectory: true,
          identity: identity, granted: 1))
    }
    let pages = apps.map { grants.own($0, of: Self.user, after: 0) }
    #expect(pages.map { $0.places.map(\.path) } == [["Users/Shared/0"], ["Users/Shared/1"]])
    #expect(pages.map(\.version) == apps.map { grants.version($0, of: Self.user) })
    #expect(pages[0].version != pages[1].version)
    #expect(grants.own(apps[0], of: Self.user + 1, after: 0).places.isEmpty)
    #expect(grants.own(launch.app, of: Self.user, after: 0).places.isEmpty)
  }

  /// An answer to a question about one team's app says nothing about another team's in its place.
  @Test func stateIsOfOneTeamsApp() throws {
    try decide(.allow, [.photos])
    var app = launch.app
    app.team = "TEAM2"
    let other = Self.launch(of: app)
    #expect(consents.authorized(launch, for: Self.user) == [.photos, .photosAdd])
    #expect(consents.authorized(other, for: Self.user) == [])
  }

  /// A decision that may not have reached an app yet, which was told something just before, says so.
  @Test(arguments: [true, false]) func decisionsSayWhenAnswersMayBeUnderWay(isSettled: Bool) throws {
    consents.settle { isSettled }
    let words = isSettled ? nil : "may still be told"
    for decision in [ConsentDecision.allow, .deny] {
      do throws(ControlFailure) {
        try consents.decide(decision, launch.app, for: Self.user, .photos, by: nil)
        #expect(words == nil)
      } catch {
        #expect(words.map { error.message.contains($0) } == true, "\(error)")
      }
      // It holds all the same.
      let state = consents.answers.state(launch.app, Self.user, .photos)
      #expect(state == (decision == .allow ? .authorized : .denied))
    }
    #expect((consents.forget(Self.user) == nil) == isSettled)
    #expect((consents.teamIsAssigned([]) == nil) == isSettled)
  }

  /// Whoever gives an answer has the one view told that has asked.
  @Test func answersAreToldToTheirView() throws {
    let told = Mutex<[UInt64]>([])
    consents.tellApps { view in told.withLock { $0.append(view) } }
    let calls = [UInt64(7), 8].map { consents.call(of: $0) }
    calls[1].give(.done)
    #expect(told.withLock { $0 } == [8] && calls[1].answer == .done && calls[0].answer == nil)
  }
}
