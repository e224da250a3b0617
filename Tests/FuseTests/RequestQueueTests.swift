// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// Requests that wait for what may not answer.
struct RequestQueueTests {
  private let queue: RequestQueue

  init() {
    var limits = Budget.Limits(descriptors: 0)
    limits[.memory] = 1 << 20
    queue = RequestQueue(budget: Budget(limits), isForOne: false)
  }

  private func add(_ message: Message, of kernel: KernelEnd, ended: @escaping @Sendable () -> Void = {}) {
    var bytes = message.bytes
    bytes.withUnsafeMutableBytes {
      queue.add($0, of: kernel.session, Payer(user: 1000), connection: 0, ended: ended)
    }
  }

  /// Each session has numbers of its own: what one has been answered is not what the other one waits for.
  @Test func twoSessionsHaveTheSameNumbers() throws {
    let door = try Door()
    defer { door.open() }
    let held = try KernelEnd(FakeFiles { if $0 == "lookup" { door.pass() } })
    let other = try KernelEnd(FakeFiles())
    _ = try (held.ask(.initialize()), other.ask(.initialize()))
    add(Message(.lookup, unique: 10, pid: UInt32(getpid()), strings("a")), of: held)
    #expect(try door.waitForArrival())
    add(Message(.getattr, unique: 10, pid: UInt32(getpid()), words(0, 0) + long(0)), of: other)
    #expect(try other.reply(milliseconds: patience)?.code == 0)
    // The kernel holds locks for it that others need, so it is given up, and that is said to its own session.
    let reply = try held.reply(milliseconds: patience)
    #expect(reply?.unique == 10 && reply?.code == -EIO)
    #expect(try other.reply(milliseconds: 100) == nil)
  }

  /// A connection that has ended is over, although a request of it is still under way.
  @Test func nobodyWaitsForWhatNobodyIsTold() throws {
    let door = try Door()
    let bell = try Bell()
    let kernel = try KernelEnd(FakeFiles { if $0 == "lookup" { door.pass() } })
    _ = try kernel.ask(.initialize())
    add(Message(.lookup, unique: 10, pid: UInt32(getpid()), strings("a")), of: kernel) { bell.ring() }
    #expect(try door.waitForArrival())
    #expect(try !bell.wait(milliseconds: 1500))
    kernel.end()
    let buffer = Session.makeBuffer()
    defer { buffer.deallocate() }
    guard case .ended = kernel.session.receive(into: buffer) else {
      door.open()
      Issue.record("the end of the connection is not seen")
      return
    }
    #expect(try bell.wait())
    #expect(queue.count == 1)
    door.open()
    #expect(eventually { queue.count == 0 })
    #expect(bell.count.load(ordering: .sequentiallyConsistent) == 1)
  }

  /// What was answered before it was done is told to its kernel when it is done.
  @Test func lateChangesAreTold() throws {
    let door = try Door()
    defer { door.open() }
    let files = FakeFiles { if $0 == "rename" { door.pass() } }
    let kernel = try KernelEnd(files)
    _ = try kernel.ask(.initialize())
    add(Message(.rename, unique: 10, pid: UInt32(getpid()), long(1) + strings("a", "b")), of: kernel)
    let reply = try kernel.reply(milliseconds: patience)
    #expect(reply?.unique == 10 && reply?.code == -EIO)
    #expect(!files.names.contains("answeredEarly"))
    door.open()
    #expect(eventually { files.names.contains("answeredEarly") })
  }
}
