// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// Slow requests for which the kernel holds a file or a directory, which others may need.
struct HeldFileTests {
  private static let copy = long(3, 0, 5, 4, 0, 10, 0)
  private static let synchronize = long(3) + words(0, 0)

  /// A pool whose calls of one kind wait at a door.
  private final class Rig {
    let door: Door
    let files: FakeFiles
    let kernel: KernelEnd
    let pool: WorkerPool

    init(holding call: String) throws {
      let door = try Door()
      self.door = door
      let count = Counted()
      counted = count
      files = FakeFiles {
        guard $0 == call else { return }
        count.number.wrappingAdd(1, ordering: .relaxed)
        door.pass()
      }
      kernel = try KernelEnd(files)
      let settings = PoolSettings()
      pool = try WorkerPool(settings, slow: SlowWork(servers: settings.servers, cpus: 2))
      try pool.start()
      try pool.begin(kernel) {}
    }

    private let counted: Counted
    /// How many calls have come to the door.
    var arrived: Int { counted.number.load(ordering: .relaxed) }

    deinit {
      door.open()
      pool.stop()
    }

    func send(_ opcode: Opcode, _ numbers: Range<UInt64>, node: UInt64 = 3, _ body: [UInt8]) throws {
      for number in numbers {
        try kernel.send(Message(opcode, unique: 2 * number, node: node, pid: 500, body))
      }
    }
  }

  private final class Counted: Sendable { let number = Atomic<Int>(0) }

  private static let kinds: [(Opcode, [UInt8], String, waiting: Int, Errno)] = [
    (.copyFileRange, copy, "copyRange", 4, .EXDEV),
    (.copyFileRange64, copy, "copyRange", 4, .EXDEV),
    (.fallocate, long(3, 0, 10) + words(0, 0), "allocate", 32, .EINTR),
    (.setattr, words(1 << 3, 0) + [UInt8](repeating: 0, count: 80), "setAttributes", 32, .EINTR),
  ]

  /// Whoever asks for more has to ask again, or do it otherwise; and the file is free meanwhile.
  @Test(arguments: 0..<4) func onlySomeWaitWithTheirFiles(number: Int) throws {
    let (opcode, body, call, waiting, error) = Self.kinds[number]
    let rig = try Rig(holding: call)
    try rig.send(opcode, 1..<2, body)
    #expect(try rig.door.waitForArrival())
    try rig.send(opcode, 2..<61, body)
    // One is served by whoever has read it, one by a thread for what waits.
    let refused = 60 - waiting - 2
    for _ in 0..<refused { #expect(try rig.kernel.reply(milliseconds: patience)?.code == -error.code) }
    rig.door.open()
    var served = 0
    for _ in refused..<60 {
      let reply = try #require(try rig.kernel.reply(milliseconds: patience))
      if reply.code == 0 { served += 1 } else { #expect(reply.code == -error.code) }
    }
    // That thread may not have begun by the time that the others came.
    #expect((waiting + 1...waiting + 2).contains(served))
    #expect(rig.files.names.filter { $0 == call }.count == served)
  }

  /// A change of names holds directories of everybody.
  @Test func namesWaitForNoCopies() throws {
    let rig = try Rig(holding: "copyRange")
    try rig.send(.copyFileRange, 1..<5, Self.copy)
    #expect(try rig.door.waitForArrival())
    let directory = FakeFiles.longDirectory.raw
    try rig.send(.rename, 100..<104, node: directory, long(8) + strings("a", "b"))
    for _ in 0..<4 { #expect(try (rig.kernel.reply(milliseconds: patience)?.unique ?? 0) >= 200) }
    #expect(rig.files.names.filter { $0 == "rename" }.count == 4 && rig.arrived <= 4)
  }

  /// What waits for a disk waits for no other of its user.
  @Test func filesWaitForNoOtherFiles() throws {
    let rig = try Rig(holding: "synchronize")
    try rig.send(.fsync, 1..<13, Self.synchronize)
    let end = monotonicNanoseconds() + UInt64(patience) * 1_000_000
    while rig.arrived < 12, monotonicNanoseconds() < end { usleep(1000) }
    #expect(rig.arrived == 12)
  }

  @Test func directoriesWaitForNoFiles() throws {
    let rig = try Rig(holding: "synchronize")
    try rig.send(.fsync, 1..<41, Self.synchronize)
    #expect(try rig.door.waitForArrival())
    try rig.send(.fsyncdir, 100..<104, Self.synchronize)
    for _ in 0..<4 { #expect(try (rig.kernel.reply(milliseconds: patience)?.unique ?? 0) >= 200) }
    #expect(rig.files.names.filter { $0 == "synchronizeDirectory" }.count == 4)
  }

  /// Nothing in it is the caller's.
  @Test func directoriesOfOthersAreNotWritten() throws {
    let rig = try Rig(holding: "synchronizeDirectory")
    try rig.send(.fsyncdir, 1..<41, Self.synchronize)
    #expect(try rig.door.waitForArrival())
    for opcode in [Opcode.fsyncdir, .fsync] {
      try rig.send(opcode, 100..<101, node: FakeFiles.othersDirectory.raw, Self.synchronize)
      let reply = try rig.kernel.reply(milliseconds: patience)
      #expect(reply?.unique == 200 && reply?.code == 0)
    }
    #expect(rig.arrived < 40 && !rig.files.names.contains("synchronize"))
  }
}
