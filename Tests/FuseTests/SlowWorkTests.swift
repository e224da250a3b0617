// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// Who comes next.
struct TurnsTests {
  @Test func usersTakeTurnsAndTheirConnectionsDo() throws {
    var turns = Turns<String>(share: 100)
    for number in 0..<3 { turns.add("a1-\(number)", 1, 11) }
    for number in 0..<2 { turns.add("a2-\(number)", 1, 12) }
    turns.add("b-0", 2, 13)
    turns.add("c-0", 3, 14)
    var order: [String] = []
    while let next = turns.next() { order.append(next.work) }
    #expect(order == ["a1-0", "b-0", "c-0", "a2-0", "a1-1", "a2-1", "a1-2"])
    #expect(turns.waiting == 0)
  }

  @Test func nobodyHasMoreThanTheirShare() throws {
    var turns = Turns<Int>(share: 2)
    for number in 0..<5 { turns.add(number, 1, 11) }
    #expect(turns.next()?.work == 0 && turns.next()?.work == 1 && turns.next() == nil)
    turns.add(100, 2, 11)
    #expect(turns.next()?.work == 100 && turns.next() == nil)
    turns.done(1)
    #expect(turns.next()?.work == 2 && turns.next() == nil && turns.waiting == 2)
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func everythingIsDoneOnceInItsOrder(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    var turns = Turns<Int>(share: 3)
    var added: [UInt32: [Int]] = [:]
    var done: [UInt32: [Int]] = [:]
    var underWay: [UInt32] = []
    for number in 0..<20_000 {
      if Bool.random(using: &random), number < 15_000 {
        let user = UInt32.random(in: 0..<5, using: &random)
        added[user, default: []].append(number)
        turns.add(number, user, 7)
      } else if Bool.random(using: &random), let next = turns.next() {
        done[next.user, default: []].append(next.work)
        underWay.append(next.user)
        #expect(underWay.filter { $0 == next.user }.count <= 3)
      } else if !underWay.isEmpty {
        turns.done(underWay.remove(at: Int.random(in: 0..<underWay.count, using: &random)))
      }
    }
    for user in underWay { turns.done(user) }
    while let next = turns.next() {
      done[next.user, default: []].append(next.work)
      turns.done(next.user)
    }
    #expect(added == done)
  }
}

/// Who comes next, and how many at once.
struct SlowTurnsTests {
  @Test(arguments: [(1, 1, 1), (2, 1, 2), (8, 4, 8)])
  func nobodyKeepsAllProcessorsBusy(cpus: Int, share: Int, limit: Int) {
    var turns = SlowTurns<UInt32>(threads: 20, cpus: cpus)
    for _ in 0..<20 { _ = turns.add(1, 1, 11, .long) }
    var underWay: [SlowTurns<UInt32>.Turn] = []
    while let turn = turns.next() { underWay.append(turn) }
    #expect(underWay.count == share)
    for user in [2, 3, 4] as [UInt32] { for _ in 0..<20 { _ = turns.add(user, user, 11, .long) } }
    while let turn = turns.next() { underWay.append(turn) }
    #expect(underWay.count == limit)
    // What waits for a disk is not in the way of that, nor the reverse.
    for _ in 0..<20 { _ = turns.add(5, 5, 11, .disk) }
    while let turn = turns.next() { underWay.append(turn) }
    #expect(underWay.count == limit + 10)
    for turn in underWay { turns.done(turn) }
    #expect(turns.next() != nil && turns.has(1) && turns.has(5) && !turns.has(6))
  }

  /// Neither kind waits for the end of the other.
  @Test func bothKindsTakeTurns() {
    var turns = SlowTurns<String>(threads: 2, cpus: 2)
    for number in 0..<3 {
      _ = turns.add("disk \(number)", 1, 11, .disk)
      _ = turns.add("cpu \(number)", 1, 11, .long)
    }
    var order: [String] = []
    while let turn = turns.next() {
      order.append(turn.work)
      turns.done(turn)
    }
    #expect(order == ["disk 0", "cpu 0", "disk 1", "cpu 1", "disk 2", "cpu 2"])
  }
}

/// Slow requests of one user, and the others.
struct SlowWorkTests {
  private static let slow: [(Opcode, [UInt8], String)] = [
    (.fsync, long(3) + words(0, 0), "synchronize"),
    (.fsyncdir, long(3) + words(0, 0), "synchronizeDirectory"),
    (.fallocate, long(3, 0, 10) + words(0, 0), "allocate"),
    (.copyFileRange, long(3, 0, 5, 4, 0, 10, 0), "copyRange"),
    (.copyFileRange64, long(3, 0, 5, 4, 0, 10, 0), "copyRange"),
    (.setattr, words(1 << 3, 0) + [UInt8](repeating: 0, count: 80), "setAttributes"),
    (.open, words(0o1001, 0), "open"),
    (.read, long(3, 0) + words(16, 0) + long(0) + words(0, 0), "read"),
  ]

  /// However many of them there are, none of a neighbour's requests waits; not even a slow one.
  @Test(arguments: 0..<8)
  func floodOfSlowRequestsLeavesRoomForOthers(number: Int) throws {
    let (opcode, body, call) = Self.slow[number]
    let door = try Door()
    let held = Atomic<Int>(0)
    let files = FakeFiles {
      guard $0 == call else { return }
      if held.wrappingAdd(1, ordering: .relaxed).newValue <= 20 { door.pass() }
    }
    let kernel = try KernelEnd(files)
    let pool = try WorkerPool(PoolSettings())
    let bell = try Bell()
    try pool.start()
    defer {
      door.open()
      pool.stop()
    }
    try pool.begin(kernel) { bell.ring() }
    for unique in UInt64(0)..<40 {
      try kernel.send(Message(opcode, unique: 1000 + 2 * unique, uid: 1000, pid: UInt32(500 + unique), body))
    }
    #expect(try door.waitForArrival())
    var refused = 0
    for unique in UInt64(0)..<50 {
      try kernel.send(Message(.lookup, unique: 100 + 2 * unique, uid: 2000, strings("a")))
      let before = monotonicNanoseconds()
      var reply = try kernel.reply(milliseconds: patience)
      // Beyond some, they are refused.
      while let other = reply, other.unique >= 1000 {
        #expect([-EXDEV, -EINTR].contains(other.code))
        refused += 1
        reply = try kernel.reply(milliseconds: patience)
      }
      #expect(reply?.unique == 100 + 2 * unique)
      #expect(monotonicNanoseconds() - before < 2_000_000_000)
    }
    #expect(held.load(ordering: .relaxed) < 20)
    // A session is not over while something of it waits for its turn.
    kernel.end()
    #expect(try !bell.wait(milliseconds: 50))
    door.open()
    #expect(try bell.wait())
    #expect(files.names.filter { $0 == call }.count == 40 - refused)
  }

  @Test func turnComesBesideAFlood() throws {
    let door = try Door()
    let files = FakeFiles { if $0 == "synchronize" { door.pass() } }
    let kernel = try KernelEnd(files)
    let pool = try WorkerPool(PoolSettings())
    try pool.start()
    defer {
      door.open()
      pool.stop()
    }
    try pool.begin(kernel) {}
    for unique in UInt64(0)..<40 {
      try kernel.send(Message(.fsync, unique: 1000 + 2 * unique, uid: 1000, long(3) + words(0, 0)))
    }
    #expect(try door.waitForArrival())
    // Two at once: one of them waits for its turn, which comes at once.
    for unique in [UInt64(100), 102] {
      try kernel.send(Message(.fallocate, unique: unique, uid: 2000, long(3, 0, 10) + words(0, 0)))
    }
    var answered: [UInt64] = []
    for _ in 0..<2 { answered.append(try #require(try kernel.reply(milliseconds: patience)).unique) }
    #expect(answered.sorted() == [100, 102])
  }

  /// What waits of one user takes no more memory than that user may have.
  @Test func whoeverHasTooMuchWaitingIsRefusedAlone() throws {
    var limits = Budget.Limits(descriptors: 0)
    limits[.memory] = 1 << 20
    let budget = Budget(limits)
    let door = try Door()
    let kernel = try KernelEnd(FakeFiles { if $0 == "write" { door.pass() } })
    let settings = PoolSettings()
    let pool = try WorkerPool(settings, slow: SlowWork(servers: settings.servers, budget: budget))
    try pool.start()
    defer {
      door.open()
      pool.stop()
    }
    try pool.begin(kernel) {}
    let data = [UInt8](repeating: 7, count: 32 << 10)
    let write = long(3, 0) + words(32 << 10, 0) + long(0) + words(0, 0) + data
    func send(_ first: UInt64, _ count: UInt64, uid: UInt32, pid: UInt32) throws {
      for number in 0..<count {
        try kernel.send(Message(.write, unique: first + 2 * number, uid: uid, pid: pid, write))
      }
    }
    // Some are at it, six wait, and there is no room for the others.
    let underWay = UInt64(settings.servers / 2)
    try send(1000, underWay + 16, uid: 1000, pid: 500)
    for _ in 0..<10 {
      let refused = try #require(try kernel.reply(milliseconds: patience))
      try #require(refused.unique >= 1000 && refused.code == -EBUSY)
    }
    // Another user has room, and what the kernel writes back is never refused.
    try send(3000, 4, uid: 2000, pid: 501)
    try send(4000, 30, uid: 0, pid: 0)
    try kernel.send(Message(.lookup, unique: 100, uid: 1000, strings("a")))
    #expect(try kernel.reply(milliseconds: patience)?.unique == 100)
    #expect(budget.refusals.map(\.user) == [1000] && budget.refusals.map(\.count) == [10])
    #expect(budget.total(.memory) > 30 * data.count)
    door.open()
    for _ in 0..<underWay + 6 + 34 { #expect(try kernel.reply(milliseconds: patience)?.code == 0) }
    pool.stop()
    #expect(budget.total(.memory) == 0)
  }

  /// Who has work waiting takes no worker for more of it; and those who do it give way to the workers.
  @Test func floodIsServedByThreadsThatGiveWay() throws {
    let first = try Door()
    let others = try Door()
    let threads = Mutex<[(name: String, niceness: Int32)]>([])
    let files = FakeFiles {
      guard $0 == "allocate" else { return }
      let name = FD.text(of: "/proc/thread-self/comm", limit: 64) ?? ""
      let thread = (name: name, niceness: getpriority(Int32(PRIO_PROCESS.rawValue), 0))
      let isFirst = threads.withLock { threads in
        threads.append(thread)
        return threads.count == 1
      }
      (isFirst ? first : others).pass()
    }
    let kernel = try KernelEnd(files)
    let settings = PoolSettings()
    // Of four CPUs one user may keep two busy.
    let pool = try WorkerPool(settings, slow: SlowWork(servers: settings.servers, cpus: 4))
    try pool.start()
    defer {
      first.open()
      others.open()
      pool.stop()
    }
    try pool.begin(kernel) {}
    func send(_ unique: UInt64) throws {
      try kernel.send(Message(.fallocate, unique: unique, uid: 1000, long(3, 0, 10) + words(0, 0)))
    }
    try send(100)
    #expect(try first.waitForArrival())
    try send(102)
    #expect(try others.waitForArrival())
    first.open()
    #expect(try kernel.reply(milliseconds: patience)?.unique == 100)
    try send(104)
    let end = monotonicNanoseconds() + UInt64(patience) * 1_000_000
    while threads.withLock({ $0.count }) < 3, monotonicNanoseconds() < end { usleep(1000) }
    let seen = threads.withLock { $0 }
    try #require(seen.count == 3)
    #expect(!seen[0].name.hasPrefix("insula-slow"))
    for thread in seen.dropFirst() {
      #expect(thread.name.hasPrefix("insula-slow") && thread.niceness == seen[0].niceness + SlowWork.niceness)
    }
  }

  @Test func poolStopsWithWorkWaiting() throws {
    let door = try Door()
    let kernel = try KernelEnd(FakeFiles { if $0 == "synchronize" { door.pass() } })
    let pool = try WorkerPool(PoolSettings())
    try pool.start()
    try pool.begin(kernel) {}
    for unique in UInt64(0)..<40 {
      try kernel.send(Message(.fsync, unique: 1000 + 2 * unique, long(3) + words(0, 0)))
    }
    #expect(try door.waitForArrival())
    let opener = try JoinableThread(name: "opening") {
      usleep(50_000)
      door.open()
    }
    pool.stop()
    opener.join()
    #expect(pool.threadCount == 0)
  }
}
