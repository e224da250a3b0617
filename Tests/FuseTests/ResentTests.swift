// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// What another worker has left of one user, beside what it has left of others.
struct ResentTests {
  /// A session that another worker has left, with requests of user 1000, and then one of another user's.
  private final class Left: Sendable {
    let kernel: KernelEnd
    private let calls: Counts
    private final class Counts: Sendable {
      let all = Atomic<Int>(0)
      let before = Atomic<Int>(-1)
    }

    init(
      _ call: String, _ opcode: Opcode, _ body: [UInt8], _ during: @escaping @Sendable () -> Void
    ) throws {
      let calls = Counts()
      self.calls = calls
      kernel = try KernelEnd(
        FakeFiles {
          if $0 == "lookup" { calls.before.store(calls.all.load(ordering: .relaxed), ordering: .relaxed) }
          guard $0 == call else { return }
          calls.all.wrappingAdd(1, ordering: .relaxed)
          during()
        })
      #expect(try kernel.ask(.initialize()).code == 0)
      let resent: UInt64 = 1 << 63
      for number in UInt64(0)..<40 {
        try kernel.send(Message(opcode, unique: resent | (1000 + 2 * number), uid: 1000, body))
      }
      try kernel.send(Message(.lookup, unique: resent | 100, uid: 2000, strings("a")))
    }

    /// How many calls of the first user had come when that of the other one came.
    var before: Int { calls.before.load(ordering: .relaxed) }
  }

  /// There may be any number of them.
  @Test func slowRequestsHaveTheirTurns() throws {
    let door = try Door()
    let left = try Left("copyRange", .copyFileRange, long(3, 0, 5, 4, 0, 10, 0)) { door.pass() }
    let slow = SlowWork(servers: 8)
    defer {
      door.open()
      slow.stop()
    }
    try left.kernel.session.resume(slow)
    #expect(left.before == 0)
    #expect(try left.kernel.reply(milliseconds: patience)?.unique == 1 << 63 | 100)
    slow.goOn()
    #expect(try door.waitForArrival())
    door.open()
    for _ in 0..<40 { #expect(try left.kernel.reply(milliseconds: patience)?.code == 0) }
  }

  /// What is quick alone takes long together, and in several views.
  @Test func quickRequestsAreServedFirstForAWhile() throws {
    let slow = SlowWork(servers: 8)
    let busy: @Sendable () -> Void = {
      let end = monotonicNanoseconds() + 20_000_000
      while monotonicNanoseconds() < end {}
    }
    let first = try Left("access", .access, words(4, 0), busy)
    let second = try Left("access", .access, words(4, 0), busy)
    defer { slow.stop() }
    try first.kernel.session.resume(slow)
    #expect((1...10).contains(first.before))
    try second.kernel.session.resume(slow)
    #expect(second.before == 0)
    slow.goOn()
    for left in [first, second] {
      for _ in 0..<41 { #expect(try left.kernel.reply(milliseconds: patience)?.code == 0) }
    }
  }
}
