// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// Users whose requests wait in the kernel without an end, and the others.
struct StalledUsersTests {
  /// Nobody waits for those who have ended.
  private static let caller = UInt32(getpid())

  /// A pool that has requests of some kinds wait, each kind at a door of its own.
  private final class Fixture {
    let doors: [String: Door]
    let kernel: KernelEnd
    let pool: WorkerPool
    let bell: Bell
    let told = Told()

    final class Told: Sendable { let users = Mutex<[UInt32]>([]) }

    init(_ calls: String...) throws {
      let doors = try Dictionary(uniqueKeysWithValues: calls.map { ($0, try Door()) })
      self.doors = doors
      var settings = PoolSettings()
      settings.stalled = { [told] user in told.users.withLock { $0.append(user) } }
      kernel = try KernelEnd(FakeFiles { doors[$0]?.pass() })
      pool = try WorkerPool(settings)
      bell = try Bell()
      try pool.start()
      try pool.begin(kernel) { [bell] in bell.ring() }
    }

    func door(_ call: String) throws -> Door { try #require(doors[call]) }

    /// Nobody waits from here on.
    func end() {
      for door in doors.values { door.open() }
      pool.stop()
    }

    func send(_ opcode: Opcode, from uid: UInt32, _ count: UInt64, first: UInt64, _ body: [UInt8]) throws {
      for number in 0..<count {
        try kernel.send(
          Message(opcode, unique: first + 2 * number, uid: uid, pid: StalledUsersTests.caller, body))
      }
    }

    /// Whether somebody is answered within some seconds.
    func isAnswered(_ opcode: Opcode, _ unique: UInt64, seconds: Int32, _ body: [UInt8]) throws -> Bool {
      try kernel.send(Message(opcode, unique: unique, uid: 3000, pid: StalledUsersTests.caller, body))
      return try kernel.reply(milliseconds: seconds * 1000)?.unique == unique
    }
  }

  private static let attributes = words(0, 0) + [UInt8](repeating: 0, count: 80)

  /// Two users have more requests wait than there are threads; when those come back, all is answered, once.
  @Test func whoWaitsHoldsUpNobodyElse() throws {
    let fixture = try Fixture("setAttributes")
    defer { fixture.end() }
    let threads = fixture.pool.threadCount
    for uid in [UInt32(1000), 2000] {
      try fixture.send(.setattr, from: uid, 20, first: UInt64(uid) * 10, Self.attributes)
    }
    #expect(try fixture.door("setAttributes").waitForArrival())
    for round in UInt64(0)..<20 {
      #expect(try fixture.isAnswered(.lookup, 100 + 2 * round, seconds: 10, strings("a")))
    }
    let end = monotonicNanoseconds() + 10_000_000_000
    while fixture.told.users.withLock({ $0.count }) < 2, monotonicNanoseconds() < end { usleep(10_000) }
    #expect(fixture.told.users.withLock { $0.sorted() } == [1000, 2000])
    // As many as before stand by.
    #expect(fixture.pool.threadCount == threads)
    try fixture.door("setAttributes").open()
    var answered: [UInt64] = []
    for _ in 0..<40 { answered.append(try #require(try fixture.kernel.reply(milliseconds: patience)).unique) }
    let expected = [UInt64(10_000), 20_000].flatMap { first in (0..<20).map { first + 2 * $0 } }
    #expect(answered.sorted() == expected)
    // Both are served from then on, too.
    try fixture.send(.lookup, from: 1000, 1, first: 500, strings("a"))
    #expect(try fixture.kernel.reply(milliseconds: patience)?.unique == 500)
  }

  /// Whose file somebody else holds waits for that file alone: no other request is refused or given up.
  @Test func whoWaitsIsServed() throws {
    let fixture = try Fixture("setAttributes", "rename")
    defer { fixture.end() }
    try fixture.send(.setattr, from: 1000, 1, first: 10, Self.attributes)
    #expect(eventually { fixture.told.users.withLock { $0 == [1000] } })
    try fixture.send(.rename, from: 1000, 1, first: 20, long(1) + strings("a", "b"))
    #expect(try fixture.door("rename").waitForArrival())
    // Longer than anything is waited for that holds locks of the kernel's.
    #expect(try fixture.kernel.reply(milliseconds: 3500) == nil)
    for round in UInt64(0)..<20 {
      try fixture.send(.lookup, from: 1000, 1, first: 100 + 2 * round, strings("a"))
      let reply = try fixture.kernel.reply(milliseconds: patience)
      #expect(reply?.unique == 100 + 2 * round && reply?.code == 0)
    }
    try fixture.door("rename").open()
    let renamed = try fixture.kernel.reply(milliseconds: patience)
    #expect(renamed?.unique == 20 && renamed?.code == 0)
  }

  /// What takes long usually has more time, and its places are given back as well.
  @Test(arguments: [
    (Opcode.fsync, long(3) + words(0, 0), "synchronize"),
    (.fallocate, long(3, 0, 10) + words(0, 0), "allocate"),
  ])
  func slowRequestsThatWaitTakeNoPlaces(opcode: Opcode, body: [UInt8], call: String) throws {
    let held = Atomic<Bool>(true)
    let door = try Door()
    let kernel = try KernelEnd(FakeFiles { if $0 == call, held.load(ordering: .relaxed) { door.pass() } })
    let pool = try WorkerPool(PoolSettings())
    try pool.start()
    defer {
      door.open()
      pool.stop()
    }
    try pool.begin(kernel) {}
    for uid in UInt32(1000)..<1008 {
      for number in UInt64(0)..<5 {
        let unique = UInt64(uid) * 10 + 2 * number
        try kernel.send(Message(opcode, unique: unique, uid: uid, pid: Self.caller, body))
      }
    }
    #expect(try door.waitForArrival())
    // Let the first of them have all places.
    usleep(200_000)
    held.store(false, ordering: .relaxed)
    for round in UInt64(0)..<3 {
      try kernel.send(
        Message(opcode, unique: 100 + 2 * round, uid: 3000, pid: StalledUsersTests.caller, body))
      // What of the others' has not been held is answered as well.
      var isAnswered = false
      while !isAnswered, let reply = try kernel.reply(milliseconds: patience) {
        isAnswered = reply.unique == 100 + 2 * round
      }
      #expect(isAnswered)
    }
    door.open()
  }

  /// A mount that is gone is over, and its threads are left, while requests still wait.
  @Test func endIsNotKeptAway() throws {
    let fixture = try Fixture("setAttributes")
    defer { fixture.end() }
    try fixture.send(.setattr, from: 1000, 30, first: 1000, Self.attributes)
    #expect(try fixture.door("setAttributes").waitForArrival())
    #expect(try fixture.isAnswered(.lookup, 100, seconds: 10, strings("a")))
    fixture.kernel.end()
    #expect(try fixture.bell.wait())
    fixture.pool.stop()
    #expect(fixture.pool.threadCount == 0)
    #expect(fixture.bell.count.load(ordering: .sequentiallyConsistent) == 1)
  }
}
