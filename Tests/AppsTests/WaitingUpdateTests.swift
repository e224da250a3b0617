// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

/// Says that apps run, until they don't.
private final class Busy: TreeObserver {
  let isRunning = Mutex(true)
  /// Whether it begins to run at the last moment.
  let startsLate: Bool

  init(startsLate: Bool = false) { self.startsLate = startsLate }

  func changing(_ change: TreeChange, _ body: () throws(Errno) -> Void) throws(Errno) {
    if startsLate { throw .EBUSY }
    try body()
  }

  func users(of path: String) -> [String] {
    isRunning.withLock { $0 } && !startsLate ? ["org.example.editor, pid 1"] : []
  }
}

private struct Unexpected: Error {
  let what: String
}

@Suite struct WaitingUpdateTests {
  private let fixture: AppFixture
  private let observer = Busy()
  private var identifier: AppIdentifier {
    get throws { try #require(AppIdentifier("org.example.editor")) }
  }

  init() throws {
    fixture = try AppFixture(teams: ["TEAM1", "TEAM2"])
    try fixture.bundle { $0.version = "2" }
    try fixture.install(for: fixture.users)
  }

  private var place: String { "\(fixture.home)/Applications" }

  private func kept() -> [String] { (try? fixture.temporary.names(in: "store/state/updates")) ?? [] }

  private func program(_ name: String = "Editor.app") -> String? {
    fixture.text("\(place)/\(name)/Contents/MacOS/editor")
  }

  private func stage(
    _ version: String, _ name: String = "Editor.app", by caller: CallerIdentity = .ourselves,
    allowingDowngrade: Bool = false, observer: (any TreeObserver)? = nil,
    _ change: (inout AppFixture.Plan) -> Void = { _ in }
  ) throws -> UpdateOutcome {
    try fixture.bundle(name) {
      $0.version = version
      change(&$0)
    }
    let source = try TemporaryDirectory.open(fixture.temporary.appending(name))
    return try fixture.installer(observer: observer ?? self.observer).updateWhenClosed(
      source.fd, named: name, for: fixture.users, by: caller, allowingDowngrade: allowingDowngrade)
  }

  private func waiting() throws -> WaitingUpdate { try #require(try fixture.registry.waitingUpdates().first) }

  private func expectNothingWaits() throws {
    #expect(try fixture.registry.waitingUpdates() == [] && kept() == [])
    #expect(try fixture.staged() == [])
    #expect(try fixture.findings(deep: true) == [])
  }

  @Test func updateOfWhatRunsWaitsAndTakesPlace() throws {
    guard case .waits(let update) = try stage("3") else { throw Unexpected(what: "it did not wait") }
    #expect(try waiting() == update && kept() == [update.name])
    #expect(program() == "#!/bin/sh\necho 2\n")
    #expect(try fixture.findings(deep: true) == [])
    let described = try AppQueries(fixture.store, fixture.registry).apps(for: fixture.account.uid)
    #expect(described.first?.update?.version == "3" && described.first?.version == "2")
    // It stays there for as long as the app runs.
    #expect(appFailure { _ = try fixture.installer(observer: observer).place(update) } != nil)
    #expect(kept() == [update.name])
    try fixture.installer().recover()
    #expect(kept() == [update.name], "whoever clears up leaves what waits")
    observer.isRunning.withLock { $0 = false }
    let done = try fixture.installer(observer: observer).place(update)
    #expect(done.before.version == "2" && done.now.version == "3")
    #expect(program() == "#!/bin/sh\necho 3\n")
    #expect(try fixture.registry.apps().map(\.version) == ["3"])
    try expectNothingWaits()
  }

  @Test func whatDoesNotRunIsUpdatedAtOnce() throws {
    observer.isRunning.withLock { $0 = false }
    guard case .updated(_, let now, _) = try stage("3") else { throw Unexpected(what: "it waited") }
    #expect(now.version == "3")
    try expectNothingWaits()
  }

  @Test func whatIsStartedAtTheLastMomentWaits() throws {
    guard case .waits = try stage("3", observer: Busy(startsLate: true)) else {
      throw Unexpected(what: "it did not wait")
    }
    #expect(program() == "#!/bin/sh\necho 2\n")
    #expect(
      appFailure { _ = try fixture.installer(observer: Busy(startsLate: true)).place(waiting()) } != nil)
    #expect(try kept() == [waiting().name])
    _ = try fixture.installer().place(waiting())
    try expectNothingWaits()
  }

  @Test func laterOneTakesThePlaceOfTheOneThatWaits() throws {
    guard case .waits(let first) = try stage("3"), case .waits(let second) = try stage("4") else {
      throw Unexpected(what: "they did not wait")
    }
    #expect(kept() == [second.name])
    // Whoever still has the first one in hand changes nothing.
    #expect(appFailure { _ = try fixture.installer().place(first) } != nil)
    #expect(try !fixture.installer().drop(first))
    #expect(try waiting() == second)
    _ = try fixture.installer().place(second)
    #expect(program() == "#!/bin/sh\necho 4\n")
    try expectNothingWaits()
  }

  @Test func newNameOfTheBundleIsTakenOver() throws {
    _ = try stage("3", "Editor 3.app")
    _ = try fixture.installer().place(waiting())
    #expect(try fixture.names(place) == ["Editor 3.app"])
    #expect(program("Editor 3.app") == "#!/bin/sh\necho 3\n")
    try expectNothingWaits()
  }

  @Test func removalAndOtherUpdatesTakeItAlong() throws {
    _ = try stage("3")
    try fixture.bundle { $0.version = "5" }
    try fixture.update(for: fixture.users)
    try expectNothingWaits()
    _ = try stage("6")
    try fixture.uninstall(of: fixture.users)
    #expect(kept() == [])
    try fixture.bundle { $0.version = "2" }
    try fixture.install(for: fixture.users)
    try expectNothingWaits()
  }

  @Test func itIsCancelledByWhoMayUpdate() throws {
    _ = try stage("3")
    let stranger = CallerIdentity(uid: fixture.account.uid &+ 1, gid: fixture.account.gid &+ 1, groups: [])
    let (home, identifier) = (fixture.users, try self.identifier)
    #expect(
      appFailure { _ = try fixture.installer().cancelUpdate(of: identifier, for: home, by: stranger) }
        == .notAllowed(doing: "update apps in", path: "/\(place)"))
    #expect(kept().count == 1)
    let cancelled = try fixture.installer().cancelUpdate(of: identifier, for: home, by: fixture.owner)
    #expect(cancelled.app.version == "3")
    try expectNothingWaits()
    #expect(
      appFailure { _ = try fixture.installer().cancelUpdate(of: identifier, for: home, by: fixture.owner) }
        == .nothingWaits(identifier: identifier.text))
  }

  @Test func nothingWaitsThatWouldBeRefused() throws {
    guard case .olderVersion? = appFailure({ _ = try stage("1") }) else {
      throw Unexpected(what: "downgrade")
    }
    guard case .sameVersion? = appFailure({ _ = try stage("2") }) else { throw Unexpected(what: "same") }
    guard case .otherTeam? = appFailure({ _ = try stage("3") { $0.team = "TEAM2" } }) else {
      throw Unexpected(what: "other team")
    }
    guard case .notInstalled? = appFailure({ _ = try stage("3", "Viewer.app") { $0.identifier = "org.v" } })
    else { throw Unexpected(what: "not installed") }
    try expectNothingWaits()
    // A downgrade that is wanted is wanted later too.
    _ = try stage("1", allowingDowngrade: true)
    _ = try fixture.installer().place(waiting())
    #expect(program() == "#!/bin/sh\necho 1\n")
  }

  @Test func whatWasChangedMeanwhileIsJudgedAgain() throws {
    _ = try stage("3")
    let update = try waiting()
    // The copy was damaged on the disk.
    let file = "store/state/updates/\(update.name)/Contents/Resources/page.html"
    try fixture.temporary.write("<p>evil</p>", to: file)
    guard case .refused? = appFailure({ _ = try fixture.installer().place(update) }) else {
      throw Unexpected(what: "damaged")
    }
    #expect(program() == "#!/bin/sh\necho 2\n")
    try fixture.installer().drop(update)
    try expectNothingWaits()
    // Another bundle lies where it was.
    _ = try stage("3")
    let second = try waiting()
    try fixture.bundle("Evil.app") { $0.version = "9" }
    let copied = try Program.run(
      ["sh", "-ec", "rm -r \(second.name); cp -r \(fixture.temporary.appending("Evil.app")) \(second.name)"],
      in: fixture.temporary.appending("store/state/updates"))
    #expect(copied.status == 0, "\(copied.errors)")
    guard case .refused? = appFailure({ _ = try fixture.installer().place(second) }) else {
      throw Unexpected(what: "exchanged")
    }
    try fixture.installer().drop(second)
    // Its root is trusted no more.
    _ = try stage("3")
    let third = try waiting()
    for name in try fixture.temporary.names(in: "store/keys/trust") {
      unlink(fixture.temporary.appending("store/keys/trust/\(name)"))
    }
    guard case .refused? = appFailure({ _ = try fixture.installer().place(third) }) else {
      throw Unexpected(what: "untrusted")
    }
    #expect(program() == "#!/bin/sh\necho 2\n")
  }

  /// The attack: an update for which there is no room is read again, whole, at each attempt.
  ///
  /// It is not read: that the copy is damaged would have been found. Another user's groups take no room.
  @Test func whatHasNoRoomIsNotRead() throws {
    _ = try stage("3") { $0.groups = ["group.org.example.one"] }
    let update = try waiting()
    let file = "store/state/updates/\(update.name)/Contents/Resources/page.html"
    let good = try #require(fixture.temporary.text(of: file))
    try fixture.temporary.write("<p>evil</p>", to: file)
    func fill(_ user: UInt32, _ name: String) throws -> InstalledApp {
      let groups = try (0..<Registry.belongingLimitOfUser).map { try #require(AppIdentifier("group.\($0)")) }
      let app = InstalledApp(
        identifier: try #require(AppIdentifier("org.example.\(name)")), user: user, name: name,
        executable: name, version: "1", shortVersion: "1", team: "TEAM1",
        path: "\(place)/\(name).app", seal: [], installed: 0, groups: groups)
      try fixture.registry.add(app)
      return app
    }
    let user = fixture.account.uid
    _ = try fill(user &+ 1, "theirs")
    guard case .refused? = appFailure({ _ = try fixture.installer().place(update) }) else {
      throw Unexpected(what: "damaged")
    }
    let many = try fill(user, "many")
    let failure = StoreError.tooManyGroups(user: user, limit: Registry.belongingLimitOfUser)
    #expect(appFailure { _ = try fixture.installer().place(update) } == .store(failure))
    #expect(kept() == [update.name])
    // It takes its place when there is room, and nothing else is wrong.
    try fixture.temporary.write(good, to: file)
    _ = try fixture.registry.remove(many.identifier, of: user, keepingData: false)
    _ = try fixture.installer().place(update)
    #expect(program() == "#!/bin/sh\necho 3\n")
  }

  /// What a copy that nobody knows is, is cleared away; nobody is led elsewhere by it.
  @Test func strangeThingsAmongThoseThatWaitAreRemoved() throws {
    _ = try stage("3")
    let precious = try fixture.temporary.write("mine", to: "precious")
    let updates = fixture.temporary.appending("store/state/updates")
    symlink(precious, updates + "/link")
    mkdir(updates + "/directory", 0o700)
    try fixture.installer().recover()
    #expect(try kept() == [waiting().name])
    #expect(fixture.temporary.text(of: "precious") == "mine")
  }

  /// It is put in place with what whoever asked for it may do by then.
  @Test(.enabled(if: Program.isRoot)) func whoMayNotAnyMoreDoesNot() throws {
    _ = try stage("3", by: fixture.owner)
    let update = try waiting()
    #expect(update.requester.uid == fixture.account.uid)
    chmod("\(fixture.tree)/\(place)", 0o500)
    #expect(
      appFailure { _ = try fixture.installer().place(update) }
        == .notAllowed(doing: "update apps in", path: "/\(place)"))
    chmod("\(fixture.tree)/\(place)", 0o755)
    _ = try fixture.installer().place(update)
    try expectNothingWaits()
  }

  /// The attack: an administrator requests an update that waits, and is none any more when the app ends.
  ///
  /// Another one stays a member.
  @Test(.enabled(if: Program.isRoot), arguments: [true, false])
  func groupThatTheRequesterHasLeftGivesNoRight(leaves: Bool) throws {
    let group = try TemporaryGroup()
    let gid = try #require(AccountGroup.named(group.name)).gid
    let requester = try TemporaryAccount(groups: [group])
    let caller = CallerIdentity(requester.account, [gid])
    try fixture.bundle("Viewer.app") { $0.identifier = "org.example.viewer" }
    try fixture.install("Viewer.app", for: .everyone)
    let place = "\(fixture.tree)/Applications"
    try #require(chown(place, 0, gid) == 0 && chmod(place, 0o775) == 0)
    try fixture.bundle("Viewer.app") {
      $0.identifier = "org.example.viewer"
      $0.version = "2"
    }
    let source = try TemporaryDirectory.open(fixture.temporary.appending("Viewer.app"))
    let outcome = try fixture.installer(observer: observer).updateWhenClosed(
      source.fd, named: "Viewer.app", for: .everyone, by: caller)
    guard case .waits(let update) = outcome else { throw Unexpected(what: "it did not wait") }
    if leaves { try requester.leave(group) }
    let failure = appFailure { _ = try fixture.installer().place(update) }
    #expect(failure == (leaves ? .notAllowed(doing: "update apps in", path: "/Applications") : nil))
    let identifier = try #require(AppIdentifier("org.example.viewer"))
    #expect(try fixture.registry.app(identifier, for: nil)?.version == (leaves ? "1" : "2"))
  }

  /// What counts is what the request had and the account has still.
  ///
  /// Whoever is in a group that the request did not have may be in any, where that is denied something.
  @Test(.enabled(if: Program.isRoot)) func rightsOfARequesterAreThoseOfToday() throws {
    let groups = try (0..<3).map { _ in try TemporaryGroup() }
    let gids = try groups.map { try #require(AccountGroup.named($0.name)).gid }
    let requester = try TemporaryAccount(groups: [groups[0], groups[1]])
    let noted = CallerIdentity(requester.account, [gids[0]]).requester
    #expect(gids.map(CallerIdentity(noted).membership) == [.member, .unknown, .unknown])
    try requester.leave(groups[0])
    try requester.leave(groups[1])
    #expect(gids.map(CallerIdentity(noted).membership) == [.notMember, .notMember, .notMember])
    #expect(CallerIdentity(noted).membership(in: requester.account.gid) == .member)
    try requester.join(groups[2])
    #expect(gids.map(CallerIdentity(noted).membership) == [.unknown, .unknown, .unknown])
    // A number without an account.
    let nobodys = CallerIdentity(uid: 4_000_000_000, gid: gids[0], groups: [gids[1]])
    #expect(gids.map(CallerIdentity(nobodys.requester).membership) == [.notMember, .notMember, .notMember])
  }
}

extension CallerIdentity {
  fileprivate init(_ account: Account, _ groups: [UInt32]) {
    self.init(uid: account.uid, gid: account.gid, groups: groups)
  }
}
