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

/// What apps were granted is read on threads of their users'.
struct GrantReadingsTests {
  private final class Asked: Sendable {
    let names = Mutex<[String]>([])
    let topics = Mutex<[AppTopic]>([])
    func add(_ name: String) { names.withLock { $0.append(name) } }
    var all: [String] { names.withLock { $0 } }
  }

  private let readings = GrantReadings()
  private let asked = Asked()
  /// What one user's disk does not do before it is said.
  private let answers = Condition(false)

  private func call(_ name: String, of user: UInt32, waits: Bool = false) -> GrantReadings.Call {
    readings.call(of: user) { [asked, answers] in
      asked.add(name)
      if waits { answers.wait(until: { $0 }) }
      return .path(name)
    } tell: {
    }
  }

  /// One user's disk does not answer: that user's calls wait, and nobody else's.
  @Test func nobodyWaitsForADiskOfOthers() throws {
    let hanging = call("hanging", of: 501, waits: true)
    #expect(hanging.take() == nil)
    #expect(eventually { asked.all == ["hanging"] })
    let (mine, theirs, third) = (call("mine", of: 501), call("theirs", of: 502), call("third", of: 503))
    for call in [mine, theirs, third] { #expect(call.take() == nil) }
    #expect(eventually { theirs.take() == .path("theirs") && third.take() == .path("third") })
    #expect(mine.take() == nil && hanging.take() == nil && readings.count(of: 501) == 1)
    // Who hangs up and calls again has no more waiting than calls, and what nobody waits for is not read.
    for number in 0..<1000 { #expect(call("gone \(number)", of: 501).take() == nil) }
    let last = call("last", of: 501)
    #expect(last.take() == nil && readings.count(of: 501) == 2)
    answers.change { $0 = true }
    #expect(eventually { hanging.take() == .path("hanging") && last.take() == .path("last") })
    #expect(mine.take() == .path("mine"))
    #expect(Set(asked.all) == ["hanging", "mine", "theirs", "third", "last"] && asked.all.count == 5)
    // The next ones have a thread again.
    let again = call("again", of: 501)
    #expect(eventually { again.take() == .path("again") })
  }

  /// At the end nobody waits for a disk, and what comes then is refused.
  @Test func theEndWaitsForNoDisk() throws {
    let hanging = call("hanging", of: 501, waits: true)
    #expect(hanging.take() == nil && eventually { asked.all == ["hanging"] })
    readings.stop(milliseconds: 20)
    let late = call("late", of: 502)
    #expect(
      late.take() == .failure(ControlFailure("too much is being done; try again later", .EAGAIN)))
    answers.change { $0 = true }
    #expect(eventually { hanging.take() == .path("hanging") })
  }

  /// The attack: what users were granted is looked at on their disks, on the thread of all apps' sockets.
  ///
  /// One user's thread is kept; what the apps of two ask is answered or waits, and takes no look itself.
  @Test func socketsOfAppsAreServedWithoutALookAtDisks() throws {
    let temporary = try TemporaryDirectory()
    let path = temporary.appending("store")
    try Store.create(at: path, TestStore.description)
    let store = try Store(opening: path, .exclusive)
    let registry = try Registry(of: store)
    let app = InstalledApp(
      identifier: try #require(AppIdentifier("org.example.player")), user: nil, name: "Player",
      executable: "Player", version: "1", shortVersion: "1.0", team: "TEAM1",
      path: "Applications/Player.app", seal: [], installed: 0)
    try registry.add(app)
    let volume = Volume(tree: store.tree, settings: VolumeSettings())
    let views = RunningViews(Budget(Budget.Limits(descriptors: 0)))
    let source: GrantService.RegistrySource = { (_) throws(StoreError) in registry }
    let grants = try GrantService(store, volume, registry: source)
    let consents = ConsentService(
      store, volume, views, grants, isReadOnly: false, log: { _ in }, registry: source)
    let storage = StorageService(store, views, .usual, registry: source) {}
    let calls = AppCalls(
      mountPoint: "/tree", grants: grants, consents: consents, storage: storage, readings: readings,
      poke: { [asked] topic in asked.topics.withLock { $0.append(topic) } })
    let launch = AppLaunch(app, home: "anna", AppEntitlements(), executable: "Player", privacy: AppPrivacy())
    for user: UInt32 in [501, 502] {
      let record = GrantRecord(
        id: Int64(user), identifier: app.identifier, user: user, team: app.signer,
        path: [Array("Users".utf8), Array("of \(user)".utf8)], isWritable: false, isDirectory: false,
        identity: ObjectIdentity(inode: 1, handle: [8, 0, 1], created: 0), granted: 0)
      volume.grants.put(Grants.Entry(record: record, steps: [], previousName: nil))
    }
    let running = try [501, 502].map { (user: UInt32) in
      let view = try grants.view(of: app, for: user, launch.places)
      let process = try Wakeup()
      return RunningView(
        UInt64(user), launch, user: user, pid: getpid(), SharedFD(try process.fd.duplicated()), view)
    }
    defer { for running in running { running.view.ended() } }
    let hanging = call("hanging", of: 501, waits: true)
    #expect(hanging.take() == nil)
    var waiting: [(topic: AppTopic, until: @Sendable () -> ControlReply?)] = []
    for running in running {
      for request in [ControlRequest.grants(nil, user: nil, after: 0), .grantChange(from: "")] {
        guard case .waits(let topic, let until) = calls.handler(for: running)(request) else {
          Issue.record("\(request) took a look at once")
          return
        }
        #expect(until() == nil)
        waiting.append((topic, until))
      }
      guard case .reply(.own) = calls.handler(for: running)(.own) else {
        Issue.record("what takes no look waits")
        return
      }
    }
    let paths = { (reply: ControlReply?) -> [String]? in
      guard case .grants(let page) = reply else { return nil }
      return page.places.map(\.path)
    }
    for call in waiting[2...] { #expect(eventually { paths(call.until()) == ["Users/of 502"] }) }
    for call in waiting[..<2] { #expect(call.until() == nil) }
    answers.change { $0 = true }
    for call in waiting[..<2] { #expect(eventually { paths(call.until()) == ["Users/of 501"] }) }
    // Those are asked again, and no others.
    #expect(eventually { asked.topics.withLock { $0.count } == 4 })
    #expect(Set(asked.topics.withLock { $0 }) == Set(waiting.map(\.topic)))
  }
}
