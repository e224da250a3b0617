// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// A door that operations wait at; rings when someone has arrived.
final class Door: Sendable {
  private let opened: Wakeup
  private let arrived: Wakeup
  init() throws {
    opened = try Wakeup()
    arrived = try Wakeup()
  }

  func open() { opened.ring() }
  func pass() {
    arrived.ring()
    // Level-triggered: open once, it stays open.
    _ = try? opened.fd.waitUntilReadable(milliseconds: patience)
  }
  func waitForArrival() throws -> Bool { try arrived.fd.waitUntilReadable(milliseconds: patience) }
}

/// Counts how often it was rung.
final class Bell: Sendable {
  private let wakeup: Wakeup
  let count = Atomic<Int>(0)
  init() throws { wakeup = try Wakeup() }

  func ring() {
    count.wrappingAdd(1, ordering: .sequentiallyConsistent)
    wakeup.ring()
  }
  func wait(milliseconds: Int32 = patience) throws -> Bool {
    try wakeup.fd.waitUntilReadable(milliseconds: milliseconds)
  }
}

/// Threads that serve.
struct WorkerPoolTests {
  private func pool(threads: Int, poll: UInt64 = 30_000) throws -> WorkerPool {
    var settings = PoolSettings()
    settings.threads = threads
    settings.pollNanoseconds = poll
    return try WorkerPool(settings)
  }

  @Test(arguments: [(1, 0), (1, 30_000), (2, 0), (4, 30_000)] as [(Int, UInt64)])
  func manySessionsAreServedToTheirEnd(threads: Int, poll: UInt64) throws {
    let pool = try pool(threads: threads, poll: poll)
    let ended = try (0..<8).map { _ in try Bell() }
    let files = (0..<8).map { _ in FakeFiles() }
    let kernels = try files.map { try KernelEnd($0) }
    let counters = files.map { _ in RequestCounter() }
    try pool.start()
    defer { pool.stop() }
    for ((kernel, counter), bell) in zip(zip(kernels, counters), ended) {
      try pool.add(kernel.session, counter: counter) { bell.ring() }
    }
    for kernel in kernels { try kernel.send(.initialize()) }
    for kernel in kernels { #expect(try kernel.reply(milliseconds: patience)?.unique == 1) }
    for round in UInt64(0)..<50 {
      for kernel in kernels {
        try kernel.send(Message(.lookup, unique: 100 + 2 * round, strings("a")))
        try kernel.send(Message(.getattr, unique: 101 + 2 * round, words(0, 0) + long(0)))
      }
      for kernel in kernels {
        var answered: [UInt64] = []
        for _ in 0..<2 { answered.append(try #require(try kernel.reply(milliseconds: patience)).unique) }
        #expect(answered.sorted() == [100 + 2 * round, 101 + 2 * round])
      }
    }
    for (kernel, bell) in zip(kernels, ended) {
      kernel.end()
      #expect(try bell.wait())
    }
    pool.stop()
    #expect(ended.map { $0.count.load(ordering: .sequentiallyConsistent) } == Array(repeating: 1, count: 8))
    #expect(pool.requests == 8 * 101)
    #expect(counters.map(\.total) == Array(repeating: 101, count: 8))
    #expect(pool.requestsByKind == ["INIT": 8, "LOOKUP": 400, "GETATTR": 400])
    for each in files { #expect(each.calls.count == 101) }
  }

  @Test func slowRequestDoesNotDelayOthers() throws {
    let door = try Door()
    let files = FakeFiles { if $0 == "lookup" { door.pass() } }
    let kernel = try KernelEnd(files)
    let pool = try pool(threads: 3)
    let bell = try Bell()
    try pool.start()
    defer {
      door.open()
      pool.stop()
    }
    try pool.begin(kernel) { bell.ring() }
    for slow in UInt64(0)..<2 {
      try kernel.send(Message(.lookup, unique: 10 + slow, strings("slow")))
      #expect(try door.waitForArrival())
      for unique in UInt64(0)..<20 {
        try kernel.send(Message(.getattr, unique: 100 * (slow + 1) + unique, words(0, 0) + long(0)))
        #expect(try kernel.reply(milliseconds: patience)?.unique == 100 * (slow + 1) + unique)
      }
    }
    // While someone is in it, a session that has ended is not over.
    kernel.end()
    #expect(try !bell.wait(milliseconds: 100))
    door.open()
    #expect(try bell.wait())
    #expect(bell.count.load(ordering: .sequentiallyConsistent) == 1)
  }

  @Test func stoppingFinishesWhatIsInHand() throws {
    let door = try Door()
    let files = FakeFiles { if $0 == "lookup" { door.pass() } }
    let kernel = try KernelEnd(files)
    let pool = try pool(threads: 2)
    try pool.start()
    try pool.begin(kernel) {}
    try kernel.send(Message(.lookup, unique: 10, strings("slow")))
    #expect(try door.waitForArrival())
    let stopped = try Bell()
    let thread = try JoinableThread(name: "stopping") {
      pool.stop()
      stopped.ring()
    }
    #expect(try !stopped.wait(milliseconds: 50))
    door.open()
    #expect(try stopped.wait())
    thread.join()
    #expect(try kernel.reply(milliseconds: 0)?.unique == 10)
    #expect(pool.threadCount == 0)
    // Nobody is there any more.
    try kernel.send(Message(.getattr, unique: 11, words(0, 0) + long(0)))
    #expect(try kernel.reply(milliseconds: 50) == nil)
  }

  /// Requests that queue up from two clients make workers sit down; both are answered, one alone disperses
  /// them, and the pool stops with workers that sit.
  @Test func crowdsSitDownAndGo() throws {
    let kernel = try KernelEnd(FakeFiles())
    let pool = try pool(threads: 2)
    try pool.start()
    try pool.begin(kernel) {}
    func getattr(_ unique: UInt64, from client: UInt32) -> Message {
      Message(.getattr, unique: unique, pid: client, words(0, 0) + long(0))
    }
    var unique: UInt64 = 100
    let becomesCrowded = try eventually {
      for number in UInt32(0)..<20 { try kernel.send(getattr(unique + UInt64(number), from: 7 + number % 2)) }
      for _ in 0..<20 { #expect(try kernel.reply(milliseconds: patience) != nil) }
      unique += 100
      return pool.isCrowded
    }
    #expect(becomesCrowded)
    let isAloneAgain = try eventually {
      try kernel.send(getattr(unique, from: 7))
      #expect(try kernel.reply(milliseconds: patience)?.unique == unique)
      unique += 1
      return !pool.isCrowded
    }
    #expect(isAloneAgain)
    pool.stop()
    #expect(pool.threadCount == 0)
  }

  /// Whoever keeps as many sessions busy as there are workers, or one by several clients, has not got the
  /// workers for good.
  @Test(arguments: [1, 2]) func busySessionsLeaveWorkersForOthers(clients: Int) throws {
    let pool = try pool(threads: 2)
    try pool.start()
    let isOver = Atomic<Bool>(false)
    // Each has requests waiting all the time, so that its worker never finds nothing to do: they are sent
    // sooner than they are answered.
    let busy = try (0..<3).map { _ in
      try KernelEnd(FakeFiles(during: { if $0 == "attributes" { usleep(500) } }))
    }
    let threads = try busy.map { kernel in
      try pool.add(kernel.session) {}
      try kernel.send(.initialize())
      return try JoinableThread(name: "busy") {
        var unique: UInt64 = 1
        for _ in 0..<8 { Self.ask(kernel, &unique, clients) }
        while !isOver.load(ordering: .relaxed), (try? kernel.reply(milliseconds: patience)) != nil {
          Self.ask(kernel, &unique, clients)
        }
      }
    }
    defer {
      isOver.store(true, ordering: .relaxed)
      for thread in threads { thread.join() }
      pool.stop()
    }
    usleep(300_000)
    for _ in 0..<20 {
      let other = try KernelEnd(FakeFiles())
      try pool.add(other.session) {}
      try other.send(.initialize())
      #expect(try other.reply(milliseconds: 5000) != nil)
      other.end()
    }
  }

  private static func ask(_ kernel: KernelEnd, _ unique: inout UInt64, _ clients: Int) {
    unique += 1
    let client = UInt32(7 + Int(unique) % clients)
    try? kernel.send(Message(.getattr, unique: unique, pid: client, words(0, 0) + long(0)))
  }

  @Test func sessionsComeAndGoWhileOthersWork() throws {
    let pool = try pool(threads: 4)
    try pool.start()
    defer { pool.stop() }
    let steady = try KernelEnd(FakeFiles())
    try pool.add(steady.session) {}
    try steady.send(.initialize())
    #expect(try steady.reply(milliseconds: patience) != nil)
    for round in UInt64(0)..<200 {
      let bell = try Bell()
      let passing = try KernelEnd(FakeFiles())
      try pool.add(passing.session) { bell.ring() }
      try passing.send(.initialize())
      try steady.send(Message(.getattr, unique: round + 2, words(0, 0) + long(0)))
      #expect(try passing.reply(milliseconds: patience) != nil)
      passing.end()
      #expect(try steady.reply(milliseconds: patience)?.unique == round + 2)
      #expect(try bell.wait())
    }
  }

  @Test func crowdIsThereOnlyWhileRequestsQueueUp() {
    var crowd = Crowd()
    #expect(!crowd.isThere)
    // One client: a request that is waited for, what the kernel sends on its own after it, and then nothing.
    for _ in 0..<1000 {
      crowd.waitedForRequest(1, from: 7)
      crowd.foundRequest(Wire.Opcode.release, from: 0)
      crowd.foundRequest(3, from: 7)
      #expect(!crowd.isThere)
      crowd.foundNothing()
    }
    // One that asks again before its worker is back.
    for _ in 0..<1000 {
      crowd.foundRequest(3, from: 7)
      #expect(!crowd.isThere)
    }
    for round in 0..<1000 { crowd.foundRequest(3, from: round % 2 == 0 ? 7 : 8) }
    #expect(crowd.isThere)
    // However long it was, it is over soon.
    for _ in 0..<32 { crowd.foundNothing() }
    #expect(!crowd.isThere)
  }
}
