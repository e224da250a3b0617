// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing
internal import Volume

/// Grants come and go while programs use what was granted as fast as they can.
@Suite(.serialized, .enabled(if: Program.isRoot, "mounting takes root"))
struct RevocationTests {
  private static let kinds = ["read", "write", "map"]
  private static func rounds(moving: Bool) -> Int { moving ? 60 : 200 }

  /// What the programs note: when began what has last succeeded, and how often something has.
  private struct Notes {
    private let page: UnsafeMutablePointer<Int64>
    init(_ path: String) throws {
      let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
      guard file >= 0, ftruncate(file, 4096) == 0,
        let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0), page != MAP_FAILED
      else { throw Errno.last }
      close(file)
      self.page = page.assumingMemoryBound(to: Int64.self)
    }
    func last(_ slot: Int) -> Int64 { page[2 * slot] }
    func count(_ slot: Int) -> Int64 { page[2 * slot + 1] }
    func end() { munmap(page, 4096) }
  }

  /// With `moving` the file gets another name and its old one back, again and again.
  @Test(arguments: [false, true]) func nothingSucceedsThatBeganAfterTheReturn(moving: Bool) throws {
    let fixture = try fixture()
    let mover = try Client()
    if moving { try mover.send("rename to and fro", fixture.all("a/file"), fixture.all("a/other")) }
    func grant() throws -> Int64 {
      while true {
        do {
          return try fixture.grant("a/file")
        } catch let error as Errno where moving && (error == .ENOENT || error == .ESTALE) {
          continue
        }
      }
    }
    try use(fixture, rounds: Self.rounds(moving: moving), give: grant) { fixture.volume.revokeGrants([$0]) }
    withExtendedLifetime(mover) {}
  }

  /// The same of what takes its user's consent.
  @Test func nothingSucceedsAfterConsentIsTakenBack() throws {
    let fixture = try fixture()
    let asking = ScopePlace("Users/Shared/a", .asks, isSubtree: false)
    let given = ScopePlace("Users/Shared/a", [.read, .write, .revocable])
    func change(_ new: ScopePlace, _ old: ScopePlace) {
      let change = ViewChange(
        ofView: fixture.mounts.views[1].number, admitting: [new], withdrawing: [old])
      #expect(fixture.volume.begin([change]).wait() == [])
    }
    change(asking, given)
    try use(fixture, rounds: 200, give: { change(given, asking) }) { change(asking, given) }
  }

  private func fixture() throws -> GrantedMounts {
    let fixture = try GrantedMounts()
    try fixture.makeDirectories("a")
    try fixture.write(String(repeating: "x", count: 8192), to: fixture.all("a/file"))
    return fixture
  }

  /// Has programs use a file while it is given to the app, and taken back.
  private func use<Given>(
    _ fixture: GrantedMounts, rounds: Int, give: () throws -> Given, take: (Given) -> Void
  ) throws {
    let path = fixture.mounts.temporary.appending("notes")
    let notes = try Notes(path)
    defer { notes.end() }
    func start(_ slot: Int) throws -> Client {
      let client = try Client()
      try client.send("use granted", Self.kinds[slot], fixture.own("a/file"), path, "\(slot)")
      return client
    }
    var clients = try Self.kinds.indices.map(start)
    for round in 0..<rounds {
      let given = try give()
      let before = Self.kinds.indices.map { notes.count($0) }
      for slot in Self.kinds.indices {
        let isUsed = eventually { notes.count(slot) >= before[slot] + 3 }
        let counts = Self.kinds.indices.map { notes.count($0) }
        try #require(isUsed, "\(Self.kinds[slot]) does nothing in round \(round): \(before) \(counts)")
      }
      take(given)
      let returned = Int64(monotonicNanoseconds())
      // Whoever maps it is ended by the next thing that it does. Nothing after the first failure tells
      // more, and each round would wait for as long as patience lasts.
      try #require(throws: Errno.ESRCH, "the map outlives round \(round)") { try clients[2].answer() }
      usleep(2000)
      for slot in Self.kinds.indices {
        let last = notes.last(slot)
        try #require(last <= returned, "\(Self.kinds[slot]) goes on after round \(round)")
      }
      clients[2] = try start(2)
    }
    // They did use it, and not only in moments between.
    for slot in Self.kinds.indices {
      #expect(notes.count(slot) > Int64(3 * rounds), "\(Self.kinds[slot])")
    }
  }
}
