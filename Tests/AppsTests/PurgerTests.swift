// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

@Suite struct PurgerTests {
  private let fixture: AppFixture
  private let container: String

  init() throws {
    fixture = try AppFixture()
    try fixture.bundle()
    try fixture.install(for: fixture.users)
    container = "\(fixture.home)/Library/Containers/org.example.editor"
  }

  private func set(_ place: String, changed: Int64) throws {
    var times = [timespec(tv_sec: Int(changed), tv_nsec: 0), timespec(tv_sec: Int(changed), tv_nsec: 0)]
    guard utimensat(AT_FDCWD, "\(fixture.tree)/\(container)/Data/\(place)", &times, 0) == 0 else {
      throw Errno.last
    }
  }

  private func purger() throws -> Purger {
    Purger(
      fixture.store, fixture.registry, containers: try Containers(fixture.store, fixture.registry),
      observer: NoTreeObserver(), rest: {})
  }

  /// A goal that is met takes nothing away, one that can't be met takes all, and what it lacks is told.
  @Test(arguments: [
    (goal: FreeSpaceGoal?.none, goes: true, isMet: Bool?.none), (.bytes(1), false, true),
    (.bytes(.max), true, false),
  ])
  func whatAGoalLacksIsTold(goal: FreeSpaceGoal?, goes: Bool, isMet: Bool?) throws {
    let places = ["tmp", "Library/Caches"].map { "\(container)/Data/\($0)" }
    for place in places {
      try fixture.write("some text", to: "store/tree/\(place)/x")
      chown("\(fixture.tree)/\(place)/x", fixture.account.uid, fixture.account.gid)
    }
    var request = PurgeRequest()
    request.goal = goal
    for isDryRun in [true, false] {
      request.isDryRun = isDryRun
      let report = try purger().purge(request, by: .ourselves)
      #expect((report.freed.count > 0) == goes, "\(report)")
      #expect(report.missing.map { $0 == 0 } == isMet, "\(report)")
      let left = goes && !isDryRun ? ["CACHEDIR.TAG"] : ["CACHEDIR.TAG", "x"]
      for place in places { #expect(try fixture.names(place).sorted() == left) }
    }
  }

  /// The attack: a purge by identifier finds out which apps others have installed for themselves.
  @Test func othersAppsAreAsUnknownAsThoseThatNobodyHas() throws {
    let user = fixture.account.uid
    let stranger = CallerIdentity(uid: user &+ 1, gid: fixture.account.gid &+ 1, groups: [])
    try fixture.bundle("Viewer.app") { $0.identifier = "org.example.viewer" }
    try fixture.install("Viewer.app", for: .everyone)
    func purge(_ app: String, by caller: CallerIdentity, of user: UInt32? = nil) throws -> AppFailure? {
      var request = PurgeRequest()
      request.apps = [try #require(AppIdentifier(app))]
      request.user = user
      request.isDryRun = true
      let purger = try purger()
      return appFailure { _ = try purger.purge(request, by: caller) }
    }
    for app in ["org.example.editor", "org.example.nobodys"] {
      let unknown = AppFailure.store(.noApp(identifier: app))
      #expect(try purge(app, by: stranger) == unknown)
      #expect(try purge(app, by: .ourselves, of: stranger.uid) == unknown)
    }
    #expect(try purge("org.example.viewer", by: stranger) == nil)
    #expect(try purge("org.example.editor", by: fixture.owner) == nil)
    #expect(try purge("org.example.editor", by: .ourselves) == nil)
    // One that has never run has no container yet.
    _ = try fixture.registry.containers(user: user).map { try fixture.registry.forget($0) }
    #expect(try purge("org.example.editor", by: fixture.owner) == nil)
    #expect(try purge("org.example.editor", by: stranger) != nil)
  }

  /// What an app needs again when it goes on is kept for it, whatever else is asked for.
  @Test(arguments: [
    (ran: 999, changed: 999, goes: true), (1000, 999, false), (999, 1000, false),
    (ran: nil, changed: 999, goes: true), (nil, 1000, false),
  ])
  func whatWasUsedLatelyIsKept(ran: Int64?, changed: Int64, goes: Bool) throws {
    try fixture.write("x", to: "store/tree/\(container)/Data/tmp/x")
    chown("\(fixture.tree)/\(container)/Data/tmp/x", fixture.account.uid, fixture.account.gid)
    try set("tmp", changed: changed)
    if let ran { fixture.store.noteRun(of: container, at: ran) }
    let purger = try purger()
    var request = PurgeRequest()
    request.places = [.tmp]
    request.unusedSince = 1000
    let report = try purger.purge(request, by: .ourselves)
    #expect((report.freed.count > 0) == goes)
    #expect(try fixture.names("\(container)/Data/tmp") == ["CACHEDIR.TAG"] + (goes ? [] : ["x"]))
  }

  /// Whose turn it is, is known before anything of theirs is looked at, which may already not get on.
  @Test func turnsBeginBeforeTheFirstLook() throws {
    var request = PurgeRequest()
    // Nothing is that old.
    request.unusedSince = 0
    var asked: [UInt32] = []
    let purger = Purger(
      fixture.store, fixture.registry, containers: try Containers(fixture.store, fixture.registry),
      observer: NoTreeObserver(),
      begins: { user in
        asked.append(user)
        return true
      }, rest: {})
    #expect(try purger.purge(request, by: .ourselves).items.isEmpty)
    #expect(asked == [fixture.account.uid])
  }
}
