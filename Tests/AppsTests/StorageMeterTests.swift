// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Apps
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store
internal import TestSupport
internal import Testing

@Suite struct StorageMeterTests {
  private let fixture: AppFixture
  private let container: String

  init() throws {
    fixture = try AppFixture()
    try fixture.bundle()
    try fixture.install(for: fixture.users)
    container = "\(fixture.home)/Library/Containers/org.example.editor"
  }

  private func write(_ bytes: Int, to place: String) throws {
    let path = "store/tree/\(container)/Data/\(place)"
    try fixture.write(String(repeating: "x", count: bytes), to: path)
    chown("\(fixture.tree)/\(container)/Data/\(place)", fixture.account.uid, fixture.account.gid)
  }

  private func report(
    _ request: StorageRequest = StorageRequest(), by caller: CallerIdentity = .ourselves,
    runs: @escaping (AppIdentifier, UInt32) -> Bool = { _, _ in false }, now: Int64 = 1000
  ) throws -> StorageReport {
    try StorageMeter(fixture.store, fixture.registry, now: now, runs: runs).report(
      request, by: caller, rule: .usual
    ) { (place) throws(Errno) in
      MeasuredUsage(try place.measure(in: fixture.store) {}, time: 7)
    }
  }

  @Test func eachPartIsCounted() throws {
    try write(50_000, to: "Documents/d")
    try write(40_000, to: "Library/Caches/c")
    try write(30_000, to: "tmp/t")
    fixture.store.noteRun(of: container, at: 5)
    let report = try report(by: fixture.owner)
    let item = try #require(report.items.first)
    #expect(report.items.count == 1 && item.app == "org.example.editor" && item.isInstalled)
    #expect(item.sizes[.bundle] > 0 && item.lastRun == 5 && item.measured == 7 && !item.isRunning)
    for (part, bytes) in [(StoragePart.documents, 50_000), (.caches, 40_000), (.tmp, 30_000)] {
      #expect((Int64(bytes)...Int64(bytes + 16_384)).contains(item.sizes[part]), "\(part)")
    }
    #expect(item.purgeable >= 70_000 && item.purgeable < 90_000 && report.purgeable == item.purgeable)
    #expect(report.used == item.sizes)
    #expect(report.available.total > report.available.free)
  }

  /// An app that runs keeps everything.
  @Test func purgeFreesNothingOfAnAppThatRuns() throws {
    try write(40_000, to: "Library/Caches/c")
    let item = try #require(try report(by: fixture.owner, runs: { _, _ in true }).items.first)
    #expect(item.isRunning && item.purgeable == 0 && item.sizes[.caches] >= 40_000)
  }

  @Test func usersSeeTheirOwn() throws {
    let other = CallerIdentity(uid: fixture.account.uid + 1, gid: 1, groups: [])
    #expect(try report(by: other).items.isEmpty)
    #expect(throws: AppFailure.self) {
      _ = try report(StorageRequest(user: fixture.account.uid), by: other)
    }
    #expect(try report(StorageRequest(user: fixture.account.uid)).items.count == 1)
    let none = try #require(AppIdentifier("org.example.none"))
    #expect(throws: AppFailure.self) { _ = try report(StorageRequest(app: none)) }
  }

  /// Whoever puts something else in the place of a container, or a link, has nothing counted.
  @Test func anotherDirectoryInItsPlaceIsNotCounted() throws {
    let path = "\(fixture.tree)/\(container)"
    try #require(rename(path, path + ".old") == 0)
    try #require(symlink(".", path) == 0)
    #expect(try report().items.first?.sizes[.data] == 0)
    unlink(path)
    try #require(mkdir(path, 0o700) == 0)
    chown(path, fixture.account.uid, fixture.account.gid)
    #expect(try report().items.first?.sizes[.data] == 0)
  }

  @Test func appThatNobodyUsesIsTold() throws {
    let later = fixture.now + StorageAdvice.unusedSeconds + 10
    fixture.store.noteRun(of: container, at: fixture.now)
    #expect(try report(now: later).items.first?.advice.map(\.kind) == [.unused])
    #expect(try report(now: later - 20).items.first?.advice.isEmpty == true)
  }

  @Test func cancelledWalkIsAFailure() throws {
    #expect(throws: AppFailure.self) {
      _ = try StorageMeter(fixture.store, fixture.registry, now: 0).report(
        StorageRequest(), by: .ourselves, rule: .usual
      ) { (_) throws(Errno) in throw .EINTR }
    }
  }

  /// As many as there may be, with the longest names, fit into an answer.
  @Test func reportHasRoomInAnAnswer() {
    let items = (0..<5000).map { number -> StorageReport.Item in
      var item = StorageReport.Item(
        app: "org.example.app\(number)", name: String(repeating: "\u{1}", count: 200), user: 1000,
        isInstalled: true)
      item.sizes.add(Int64(number), to: .data)
      var advice = StorageAdvice(.misplaced)
      advice.add(1) { [Array(repeating: 1, count: 5000)] }
      item.advice = [advice]
      return item
    }
    let space = AvailableSpace(DiskSpace(total: 10, free: 1), purgeable: 0, rule: .usual)
    let report = StorageReport(items, used: StorageSizes(), available: space)
    #expect(report.items.count > 10 && report.items.count < 100)
    #expect(report.items.count + report.others == 5000 && report.items.first?.sizes.total == 4999)
    #expect(report.othersBytes == (0..<Int64(report.others)).reduce(0, +))
  }
}
