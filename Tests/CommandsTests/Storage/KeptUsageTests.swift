// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import JSON
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import TestSupport
internal import Testing

/// What is told of places without looking at them again.
@Suite struct KeptUsageTests {
  /// A clock that goes on by what each walk costs.
  private final class World: Sendable {
    let now = Mutex(UInt64(0))
    let cost = Mutex(UInt64(0))
    let walks = Mutex(0)
    let names = Mutex(0)
  }

  private let world = World()
  private let kept: KeptUsage
  private let places: [StoragePlace]
  private let store: Store
  private let made: TestStore
  private static let millisecond: UInt64 = 1_000_000

  init() throws {
    kept = Self.kept(in: world)
    let fixture = try AppsOfAStore()
    (places, store, made) = (fixture.places, fixture.store, fixture.made)
  }

  private static func kept(
    _ remembered: RememberedUsage = RememberedUsage(), in world: World
  ) -> KeptUsage {
    KeptUsage(remembered, clock: { world.now.withLock { $0 } }) { (_, pause) throws(Errno) in
      let names = world.names.withLock { $0 }
      let cost = world.cost.withLock { $0 }
      for _ in 0..<names {
        world.now.withLock { $0 += cost / UInt64(names) }
        try pause()
      }
      if names == 0 { world.now.withLock { $0 += cost } }
      world.walks.withLock { $0 += 1 }
      return StorageUsage()
    }
  }

  private func ask(_ allowance: UInt64 = 25 * millisecond, _ place: Int = 0) throws -> UInt64 {
    var left = allowance
    _ = try kept.usage(of: places[place], allowance: &left) {}
    return left
  }

  private func cost(_ milliseconds: UInt64, names: Int = 0) {
    world.cost.withLock { $0 = milliseconds * Self.millisecond }
    world.names.withLock { $0 = names }
  }

  private func pass(_ milliseconds: UInt64) { world.now.withLock { $0 += milliseconds * Self.millisecond } }

  private var walks: Int { world.walks.withLock { $0 } }

  @Test func smallPlacesAreLookedAtEachTime() throws {
    cost(5)
    #expect(try ask() == 25 * Self.millisecond)
    #expect(try ask() == 20 * Self.millisecond)
    #expect(walks == 2)
  }

  @Test func largePlacesAreToldFromMemoryAndLookedAtLater() throws {
    cost(1000)
    _ = try ask()
    for _ in 0..<100 { _ = try ask() }
    #expect(walks == 1 && kept.nextWanted() == nil)
    // At most a twentieth of the time goes into it.
    pass(19_000)
    _ = try ask()
    #expect(kept.nextWanted() == nil)
    pass(40_000)
    _ = try ask()
    #expect(walks == 1)
    #expect(kept.nextWanted() == places[0])
    #expect(kept.nextWanted() == nil)
  }

  /// What is left of the allowance is for the next one.
  @Test func allowanceIsForAllPlacesTogether() throws {
    cost(15)
    for place in 0..<2 { _ = try ask(25 * Self.millisecond, place) }
    var left = 25 * Self.millisecond
    for place in places { _ = try kept.usage(of: place, allowance: &left) {} }
    #expect(walks == 3)
  }

  @Test func placeThatHasGrownIsNotWaitedFor() throws {
    cost(5)
    _ = try ask()
    cost(10_000, names: 100_000)
    let before = world.now.withLock { $0 }
    pass(60_000)
    #expect(try ask() == 0)
    #expect(world.now.withLock { $0 } - before < 60_100 * Self.millisecond)
    #expect(walks == 1)
    #expect(kept.nextWanted() == places[0])
  }

  @Test func whatWasPurgedIsLookedAtAgain() throws {
    cost(1000)
    let place = try #require(places.firstIndex { $0.app != nil })
    _ = try ask(0, place)
    _ = try ask(0, place)
    #expect(walks == 1)
    kept.changed(try #require(places[place].app), of: try #require(places[place].owner.user) + 1)
    _ = try ask(0, place)
    #expect(walks == 1)
    kept.changed(try #require(places[place].app), of: try #require(places[place].owner.user))
    _ = try ask(0, place)
    _ = try ask(0, place)
    #expect(walks == 2)
  }

  @Test func whatIsGoneIsForgotten() throws {
    cost(1000)
    for place in 0..<2 { _ = try ask(0, place) }
    kept.keepOnly([places[1]])
    for place in 0..<2 { _ = try ask(0, place) }
    #expect(walks == 3)
  }

  /// A daemon need not walk through millions of files before it can tell what the one before has found.
  @Test func whatWasLeftIsToldAndLookedAtLater() throws {
    cost(1000)
    _ = try ask(0, 0)
    pass(3_600_000)
    kept.remembered.leave(in: store)
    let next = Self.kept(RememberedUsage(in: store), in: world)
    var left: UInt64 = 0
    let told = try next.usage(of: places[0], allowance: &left) {}
    #expect(walks == 1 && told.time > 0)
    #expect(next.nextWanted() == places[0])
    // What nobody has asked about is left for the one after.
    #expect(Self.kept(RememberedUsage(in: store), in: world).remembered.places.map(\.key) == [places[0].key])
    _ = try next.usage(of: places[1], allowance: &left) {}
    #expect(walks == 2)
    next.keepOnly([])
    #expect(next.remembered.places.isEmpty)

    try store.state.replaceContents(of: "storage.json", with: Array("{\"places\":[{}]}".utf8), mode: 0o600)
    #expect(RememberedUsage(in: store).places.isEmpty)
  }

  @Test func whoeverDoesNotWaitEndsIt() throws {
    cost(1000, names: 1000)
    var left: UInt64 = 0
    #expect(throws: Errno.EINTR) {
      _ = try kept.usage(of: places[0], allowance: &left) { () throws(Errno) in throw .EINTR }
    }
    #expect(walks == 0)
  }
}

extension KeptUsageTests {
  /// The largest report there can be reaches a client whole.
  @Test func largeReportIsAnswered() throws {
    let item =
      #"{"app":"org.example.app","name":"App","user":1000,"isInstalled":true,"isRunning":false,"#
      + #""sizes":{"bundle":1,"documents":2,"data":3,"caches":4,"tmp":5,"groups":6,"icloud":7},"#
      + #""purgeable":1,"advice":[{"kind":"misplaced","count":1,"bytes":1,"examples":["\u0001"#
      + String(repeating: "\\u0001", count: 199) + #""]}],"measured":1,"isComplete":true}"#
    // As many bytes as a report has room for.
    let items = Array(repeating: item, count: (96 << 10) / item.utf8.count)
    let report = try JSONText.decode(
      StorageReport.self,
      from: Array(
        """
        {"items":[\(items.joined(separator: ","))],"others":1,"othersBytes":1,"purgeable":1,
         "used":{"bundle":1,"documents":2,"data":3,"caches":4,"tmp":5,"groups":6,"icloud":7},
         "available":{"total":1,"free":1,"importantUsage":1,"opportunisticUsage":1}}
        """.utf8))
    let temporary = try TemporaryDirectory()
    let directory = try TemporaryDirectory.open(temporary.path)
    let server = try ControlServer(in: directory.fd, name: "control", mode: 0o600) { _ in
      .job(.storage) { _ in .storage(report) }
    }
    try server.start()
    defer { server.stop() }
    let client = try ControlClient(in: directory.fd, name: "control")
    #expect(try client.ask(.storage(StorageRequest()), milliseconds: 20_000) == .storage(report))
  }
}

/// A bundle and a container, as a registry has them.
private struct AppsOfAStore {
  let places: [StoragePlace]
  let store: Store
  let made: TestStore

  init() throws {
    made = try TestStore()
    store = try made.open()
    let registry = try Registry(state: store.state, path: made.path + "/state")
    let identifier = try #require(AppIdentifier("com.example.editor"))
    try registry.add(
      InstalledApp(
        identifier: identifier, user: nil, name: "Editor", executable: "Editor", version: "1",
        shortVersion: "1", team: "TEAM", path: "Applications/Editor.app", seal: Array(0..<32), installed: 1))
    _ = try registry.note(
      ContainerRecord(
        uuid: UUIDText.random(), kind: .data, identifier: identifier, user: 1000,
        path: "Users/anna/Library/Containers/com.example.editor"))
    places = try StorageMeter(store, registry, now: 0).places()
    try #require(places.count == 2)
  }
}
