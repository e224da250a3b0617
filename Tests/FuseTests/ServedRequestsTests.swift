// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing

/// Requests by which workers have died: what is noted of them, and what the next workers do.
struct ServedRequestsTests {
  private static let resent: UInt64 = 1 << 63

  private static func message(_ unique: UInt64, _ opcode: Opcode = .lookup) -> Message {
    Message(opcode, unique: unique, node: 5, opcode == .forget ? long(1) : strings("name"))
  }

  /// What a worker leaves if it dies while it serves.
  private final class Death: Sendable {
    private let memory: SharedMemory
    private let state = Mutex<(isNear: Bool, left: SharedMemory?)>((false, nil))

    init(_ memory: SharedMemory) { self.memory = memory }

    /// The memory as it is now.
    func copy() throws -> SharedMemory {
      let copy = try SharedMemory("test", size: memory.size)
      try copy.whole.makeRoom(0..<copy.size)
      copy.base.copyMemory(from: memory.base, byteCount: memory.size)
      return copy
    }

    func comes() { state.withLock { $0.isNear = true } }
    func happens() {
      state.withLock { state in
        if state.isNear { state.left = try? copy() }
      }
    }
    var left: SharedMemory? { state.withLock { $0.left } }
  }

  /// A worker with its connections, one for each view; it starts with what another one has left.
  private final class OneWorker {
    let requests: ServedRequests
    private(set) var files: [UInt32: FakeFiles] = [:]
    private var kernels: [UInt32: KernelEnd] = [:]
    private let death: Death

    init(after other: SharedMemory? = nil, hasDied: Bool = true, views: [UInt32] = [1], parks: Bool = false)
      throws
    {
      let memory = try other ?? SharedMemory("test", size: ServedRequests.size)
      let death = Death(memory)
      self.death = death
      requests = ServedRequests(in: memory.whole, isKept: other != nil, hasDied: hasDied)
      for view in views {
        let files = FakeFiles(parks: parks, served: ServedPlace(requests, view: view)) { _ in death.happens()
        }
        let kernel = try KernelEnd(files)
        self.files[view] = files
        kernels[view] = kernel
        _ = try kernel.ask(.initialize())
      }
    }

    func copy() throws -> SharedMemory { try death.copy() }

    func process(_ message: Message) throws { try #require(kernels[1]).process(message) }

    func ask(_ message: Message, view: UInt32 = 1) throws -> Int32 {
      try #require(kernels[view]).ask(message).code
    }

    /// Dies while it serves a request; gives what it leaves.
    func die(serving message: Message, view: UInt32 = 1) throws -> SharedMemory {
      death.comes()
      try #require(kernels[view]).process(message)
      return try #require(death.left)
    }
  }

  @Test func requestByWhichTwoHaveDiedIsNotServedByTheThird() throws {
    let first = try OneWorker()
    let second = try OneWorker(after: first.die(serving: Self.message(8)))
    #expect(second.requests.suspects == 1)
    let third = try OneWorker(after: second.die(serving: Self.message(8 | Self.resent)))
    #expect(try third.ask(Self.message(8 | Self.resent)) == -EIO)
    #expect(third.files[1]?.names == ["started"] && third.files[1]?.givenUp == 1)
    // It has been answered, and others are served.
    #expect(third.requests.suspects == 0)
    #expect(try third.ask(Self.message(10)) == 0 && third.ask(Self.message(12 | Self.resent)) == 0)
    #expect(third.files[1]?.givenUp == 1)
  }

  @Test func requestThatSucceedsAfterADeathIsForgotten() throws {
    let first = try OneWorker()
    let second = try OneWorker(after: first.die(serving: Self.message(8)))
    #expect(try second.ask(Self.message(8 | Self.resent)) == 0)
    #expect(second.requests.suspects == 0)
    // What dies later is another request.
    let third = try OneWorker(after: second.die(serving: Self.message(10)))
    #expect(third.requests.suspects == 1)
    #expect(try third.ask(Self.message(10 | Self.resent)) == 0)
    #expect(third.files[1]?.givenUp == 0)
  }

  /// Whoever restarts the daemon has not found a request that ends it.
  @Test func restartOnRequestCountsNothing() throws {
    let first = try OneWorker()
    let second = try OneWorker(after: first.die(serving: Self.message(8)), hasDied: false)
    #expect(second.requests.suspects == 0)
    let third = try OneWorker(after: second.die(serving: Self.message(8 | Self.resent)))
    #expect(third.requests.suspects == 1)
    #expect(try third.ask(Self.message(8 | Self.resent)) == 0)
  }

  /// A worker that dies before it comes to a request leaves its count as it is.
  @Test func countsOutliveAWorkerThatServesNothing() throws {
    let first = try OneWorker()
    let second = try OneWorker(after: first.die(serving: Self.message(8)))
    let third = try OneWorker(after: second.copy())
    #expect(third.requests.suspects == 1)
    let fourth = try OneWorker(after: third.die(serving: Self.message(8 | Self.resent)))
    #expect(try fourth.ask(Self.message(8 | Self.resent)) == -EIO)
  }

  /// Each kernel numbers its requests by itself.
  @Test func viewsAreToldApart() throws {
    let first = try OneWorker(views: [1, 2])
    let second = try OneWorker(after: first.die(serving: Self.message(8), view: 1), views: [1, 2])
    let third = try OneWorker(
      after: second.die(serving: Self.message(8 | Self.resent), view: 2), views: [1, 2])
    #expect(third.requests.suspects == 2)
    #expect(try third.ask(Self.message(8 | Self.resent), view: 1) == 0)
    #expect(try third.ask(Self.message(8 | Self.resent), view: 2) == 0)
    let fourth = try OneWorker(after: second.copy(), views: [1, 2])
    fourth.requests.forget(view: 1)
    #expect(fourth.requests.suspects == 0)
  }

  /// What the kernel does not send again is not noted: it would stay for ever.
  @Test func noticesAreNotNoted() throws {
    let first = try OneWorker()
    let second = try OneWorker(after: first.die(serving: Self.message(8, .forget)))
    #expect(second.requests.suspects == 0)
  }

  /// However many requests are under way, the latest death is counted.
  @Test func tableHasABound() throws {
    var worker = try OneWorker()
    for number in 1...600 {
      worker = try OneWorker(after: worker.die(serving: Self.message(UInt64(number * 2))))
    }
    #expect(worker.requests.suspects == 512)
    let last = try OneWorker(after: worker.die(serving: Self.message(1200 | Self.resent)))
    #expect(try last.ask(Self.message(1200 | Self.resent)) == -EIO)
  }

  /// A torn or damaged note counts for nothing: neither of a thread nor of a suspect.
  @Test(arguments: [false, true]) func damagedNotesAreDropped(isSuspect: Bool) throws {
    let left = try OneWorker().die(serving: Self.message(8))
    if isSuspect {
      #expect(ServedRequests(in: left.whole, isKept: true, hasDied: true).suspects == 1)
    }
    let used = (0..<ServedRequests.size / 4).filter { word in
      left.base.load(fromByteOffset: word * 4, as: UInt32.self) != 0
    }
    #expect(used.count >= 3)
    for word in used {
      let copy = try SharedMemory("test", size: left.size)
      try copy.whole.makeRoom(0..<copy.size)
      copy.base.copyMemory(from: left.base, byteCount: left.size)
      let damaged = copy.base.load(fromByteOffset: word * 4, as: UInt32.self) ^ 1 << 5
      copy.base.storeBytes(of: damaged, toByteOffset: word * 4, as: UInt32.self)
      let noted = ServedRequests(in: copy.whole, isKept: true, hasDied: true).suspects
      // The tag of a thread's empty slot belongs to nothing.
      #expect(noted == 0 || isSuspect && noted == 1 && word < 1024 * 16, "\(word)")
    }
  }

  /// If even the refusal ends a worker, the next one refuses without a word.
  @Test func whoDiesWhileItRefusesIsFollowedByOneThatOnlyRefuses() throws {
    let first = try OneWorker()
    let second = try OneWorker(after: first.die(serving: Self.message(8)))
    let third = try OneWorker(after: second.die(serving: Self.message(8 | Self.resent)))
    let fourth = try OneWorker(after: third.die(serving: Self.message(8 | Self.resent)))
    #expect(third.files[1]?.givenUp == 1)
    #expect(try fourth.ask(Self.message(8 | Self.resent)) == -EIO)
    #expect(fourth.files[1]?.givenUp == 0 && fourth.requests.suspects == 0)
  }

  /// A request that waits for a lock is not being served; it is a suspect until somebody answers it.
  @Test func waitIsNotNotedAndItsAnswerCounts() throws {
    let first = try OneWorker()
    let waiting = Message(
      .setlkw, unique: 8 | Self.resent, node: 5, long(1, 2, 0, 9) + words(UInt32(F_WRLCK), 1, 0, 0))
    let left = try first.die(serving: Self.message(8))
    let second = try OneWorker(after: left, parks: true)
    try second.process(waiting)
    #expect(second.requests.suspects == 1)
    let third = try OneWorker(after: second.copy(), parks: true)
    #expect(third.requests.verdict(on: RequestID(8 | Self.resent), of: 1) == .serve)
    let reply = try #require(second.files[1]?.parked.first)
    let thread = try JoinableThread(name: "answers") { if reply.claim() { reply.send(nil) } }
    thread.join()
    #expect(second.requests.suspects == 0)
  }

  /// Whoever waited for a request has given up meanwhile: the kernel does not send it again.
  @Test func whatIsNotSentAgainIsForgotten() throws {
    let first = try OneWorker(views: [1, 2])
    let second = try OneWorker(after: first.die(serving: Self.message(8), view: 1), views: [1, 2])
    second.requests.forget(view: 2, besides: [])
    second.requests.forget(view: 1, besides: [8])
    #expect(second.requests.suspects == 1)
    second.requests.forget(view: 1, besides: [10])
    #expect(second.requests.suspects == 0)
  }
}
