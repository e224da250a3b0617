// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Two views of one volume, each with a kernel of its own that asks for locks.
final class Rivals: Sendable {
  let tree: Tree
  let views: [View]
  let kernels: [KernelEnd]
  private let last = Atomic<UInt64>(100)

  init(_ budget: Budget = Budget(Budget.Limits(descriptors: 1 << 14))) throws {
    tree = try Tree(budget: budget)
    try tree.temporary.write("x", to: "Users/Shared/a")
    try tree.temporary.write("x", to: "Users/Shared/b")
    views = [tree.view, try View(tree.volume)]
    kernels = try views.map { try KernelEnd($0) }
    for kernel in kernels { _ = try kernel.ask(.initialize()) }
  }

  /// Asks for a lock as an owner, through one of the views; gives the request's number.
  @discardableResult
  func send(
    _ opcode: Opcode, _ view: Int, owner: UInt64, _ kind: Int32, _ first: UInt64 = 0,
    _ end: UInt64 = UInt64(Int64.max),
    flock: Bool = false, file: String = "a", user: UInt32 = 1000
  ) throws -> UInt64 {
    let number = last.wrappingAdd(2, ordering: .relaxed).newValue
    let node = try views[view].node("Users/Shared/" + file)
    let body = long(1, owner, first, end) + words(UInt32(kind), 77, flock ? 1 : 0, 0)
    kernels[view].process(Message(opcode, unique: number, node: node.raw, uid: user, body))
    return number
  }

  /// What has been answered: the number of the request and the errno.
  func answers(_ view: Int) throws -> [UInt64: Int32] {
    Dictionary(uniqueKeysWithValues: try kernels[view].replies().map { ($0.unique, -$0.code) })
  }

  /// Asks without waiting; gives the errno.
  func set(
    _ view: Int, owner: UInt64, _ kind: Int32, _ first: UInt64 = 0, _ end: UInt64 = UInt64(Int64.max),
    flock: Bool = false,
    file: String = "a", user: UInt32 = 1000
  ) throws -> Int32 {
    let unique = try send(
      .setlk, view, owner: owner, kind, first, end, flock: flock, file: file, user: user)
    return try #require(try answers(view)[unique])
  }

  func interrupt(_ view: Int, _ unique: UInt64) {
    kernels[view].process(Message(.interrupt, unique: unique + 1, node: 0, long(unique)))
  }
}

struct LockTableTests {
  private static let read = Int32(F_RDLCK)
  private static let write = Int32(F_WRLCK)
  private static let none = Int32(F_UNLCK)

  @Test(arguments: [false, true])
  func lockThroughOneViewExcludesThroughTheOther(flock: Bool) throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 7, Self.write, flock: flock) == 0)
    // The same number is someone else there.
    #expect(try rivals.set(1, owner: 7, Self.write, flock: flock) == EAGAIN)
    #expect(try rivals.set(1, owner: 7, Self.read, flock: flock) == EAGAIN)
    #expect(try rivals.set(1, owner: 7, Self.write, flock: flock, file: "b") == 0)
    // The two kinds of locks know nothing of each other.
    #expect(try rivals.set(1, owner: 7, Self.write, flock: !flock) == 0)
    #expect(try rivals.set(0, owner: 7, Self.none, flock: flock) == 0)
    #expect(try rivals.set(1, owner: 7, Self.read, flock: flock) == 0)
    #expect(try rivals.set(0, owner: 7, Self.read, flock: flock) == 0)
    #expect(try rivals.set(0, owner: 7, Self.write, flock: flock) == EAGAIN)
  }

  @Test func rangesOfOneFileAreApart() throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 1, Self.write, 0, 9) == 0)
    #expect(try rivals.set(1, owner: 1, Self.write, 10, 19) == 0)
    #expect(try rivals.set(1, owner: 2, Self.write, 9, 10) == EAGAIN)
    let unique = try rivals.send(.getlk, 1, owner: 2, Self.write, 5, 100)
    let reply = try #require(try rivals.kernels[1].replies().first { $0.unique == unique })
    #expect(reply.code == 0 && reply.word(32) == UInt32(Self.write))
    #expect([0, 10].contains(reply.long(16)))
    #expect(try rivals.set(1, owner: 2, Self.write, 20, UInt64(Int64.max)) == 0)
    #expect(rivals.tree.volume.locks.count == 3)
  }

  @Test func changeOfAFlockGivesTheOldOneBackFirst() throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 1, Self.read, flock: true) == 0)
    #expect(try rivals.set(1, owner: 2, Self.read, flock: true) == 0)
    #expect(try rivals.set(0, owner: 1, Self.write, flock: true) == EAGAIN)
    // As flock(2) says: what was held before the attempt may be lost.
    #expect(try rivals.set(1, owner: 2, Self.write, flock: true) == 0)
    #expect(try rivals.set(1, owner: 2, Self.read, flock: true) == 0)
    #expect(try rivals.set(0, owner: 1, Self.read, flock: true) == 0)
  }

  @Test(arguments: [false, true])
  func waitersGetItInTheirOrder(flock: Bool) throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 1, Self.write, flock: flock) == 0)
    let waiters = try (0..<4).map { number in
      try rivals.send(.setlkw, number % 2, owner: UInt64(10 + number), Self.write, flock: flock)
    }
    #expect(try rivals.answers(0).isEmpty && rivals.answers(1).isEmpty)
    #expect(rivals.tree.volume.locks.count == 5)
    var holder: (view: Int, owner: UInt64) = (0, 1)
    for number in 0..<4 {
      _ = try rivals.send(.setlk, holder.view, owner: holder.owner, Self.none, flock: flock)
      let answered = try rivals.answers(0).merging(try rivals.answers(1)) { $1 }.filter {
        waiters.contains($0.key)
      }
      #expect(answered == [waiters[number]: 0])
      holder = (number % 2, UInt64(10 + number))
    }
    _ = try rivals.send(.setlk, holder.view, owner: holder.owner, Self.none, flock: flock)
    #expect(rivals.tree.volume.locks.count == 0)
  }

  @Test func manyReadersAreLetInAtOnce() throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 1, Self.write) == 0)
    let readers = try (0..<3).map { try rivals.send(.setlkw, 1, owner: UInt64(10 + $0), Self.read) }
    _ = try rivals.set(0, owner: 1, Self.none)
    #expect(try rivals.answers(1) == Dictionary(uniqueKeysWithValues: readers.map { ($0, 0) }))
  }

  @Test func interruptedWaiterIsOutOfTheQueue() throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 1, Self.write) == 0)
    let first = try rivals.send(.setlkw, 1, owner: 2, Self.write)
    let second = try rivals.send(.setlkw, 1, owner: 3, Self.write)
    rivals.interrupt(1, first)
    #expect(try rivals.answers(1)[first] == EINTR)
    #expect(rivals.tree.volume.locks.count == 2)
    _ = try rivals.set(0, owner: 1, Self.none)
    #expect(try rivals.answers(1) == [second: 0])
    // The one that gave up has nothing.
    _ = try rivals.set(1, owner: 3, Self.none)
    #expect(rivals.tree.volume.locks.count == 0)
  }

  /// A lock that is held for hours must not gather all who once gave up waiting for it.
  @Test func interruptedWaitersDoNotPileUp() throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 1, Self.write) == 0)
    for _ in 0..<500 {
      let waiter = try rivals.send(.setlkw, 1, owner: 2, Self.write)
      rivals.interrupt(1, waiter)
      #expect(try rivals.answers(1)[waiter] == EINTR)
    }
    #expect(rivals.tree.volume.locks.count == 1)
    let locks = rivals.tree.volume.locks.objects
    let queued = locks.numbers.compactMap { number in (try? locks.with(number) { $0.waiters.count }) ?? nil }
    #expect(queued.count == 1 && queued.reduce(0, +) < 40, "\(queued)")
  }

  @Test func circleOfWaitersIsRefused() throws {
    let rivals = try Rivals()
    for owner in UInt64(0)..<3 {
      #expect(try rivals.set(Int(owner) % 2, owner: owner, Self.write, owner, owner) == 0)
    }
    let first = try rivals.send(.setlkw, 0, owner: 0, Self.write, 1, 1)
    let second = try rivals.send(.setlkw, 1, owner: 1, Self.write, 2, 2)
    let third = try rivals.send(.setlkw, 0, owner: 2, Self.write, 0, 0)
    #expect(try rivals.answers(0) == [third: EDEADLK])
    #expect(try rivals.answers(1).isEmpty)
    // Without it the others come through.
    _ = try rivals.send(.setlk, 0, owner: 2, Self.none, 2, 2)
    #expect(try rivals.answers(1)[second] == 0)
    _ = try rivals.send(.setlk, 1, owner: 1, Self.none, 1, 1)
    #expect(try rivals.answers(0)[first] == 0)
  }

  @Test func endOfASessionEndsItsWaiting() throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 1, Self.write) == 0)
    let waiter = try rivals.send(.setlkw, 1, owner: 2, Self.write)
    rivals.kernels[1].session.finish()
    #expect(try rivals.answers(1) == [waiter: ECONNABORTED])
    _ = try rivals.set(0, owner: 1, Self.none)
    #expect(rivals.tree.volume.locks.count == 0)
    #expect(try rivals.set(0, owner: 5, Self.write) == 0)
  }

  /// What is released between the first look and the wait is had at once: nobody waits for ever.
  @Test func waiterLooksAgainBeforeItWaits() throws {
    let rivals = try Rivals()
    for round in 0..<3000 {
      #expect(try rivals.set(0, owner: 1, Self.write) == 0)
      let ready = Atomic<Int>(0)
      let thread = try JoinableThread(name: "unlocking") {
        ready.store(1, ordering: .releasing)
        while ready.load(ordering: .acquiring) == 1 {}
        // A little sooner or later each time.
        for _ in 0..<(round % 200) { _ = ready.load(ordering: .acquiring) }
        _ = try? rivals.send(.setlk, 0, owner: 1, Self.none)
      }
      while ready.load(ordering: .acquiring) == 0 {}
      ready.store(2, ordering: .releasing)
      let waiter = try rivals.send(.setlkw, 1, owner: 2, Self.write)
      thread.join()
      try #require(try rivals.answers(1)[waiter] == 0, "round \(round)")
      #expect(try rivals.set(1, owner: 2, Self.none) == 0)
      _ = try rivals.answers(0)
    }
    #expect(rivals.tree.volume.locks.count == 0)
  }

  @Test func locksOfOneUserLeaveThoseOfOthers() throws {
    var limits = Budget.Limits(descriptors: 1 << 14)
    limits[.locks] = 1600
    limits[.waiting] = 160
    let rivals = try Rivals(Budget(limits))
    let budget = rivals.tree.volume.budget
    func set(_ user: UInt32, _ kind: Int32, _ first: UInt64, _ end: UInt64? = nil) throws -> Int32 {
      try rivals.set(0, owner: UInt64(user), kind, first, end ?? first, user: user)
    }
    for number in UInt64(0)..<300 { #expect(try set(1000, Self.write, 4 * number, 4 * number + 2) == 0) }
    #expect(try set(1000, Self.write, 5000) == ENOLCK)
    // To give back a part in the middle makes two of one.
    #expect(try set(1000, Self.none, 1) == ENOLCK)
    // What makes no more of them is done, also when others have come.
    #expect(try set(1001, Self.write, 6000) == 0)
    #expect(try set(1000, Self.read, 0, 2) == 0)
    #expect(try set(1000, Self.none, 0, 0) == 0)
    #expect(try set(1001, Self.write, 7000) == 0 && budget.refusals.map(\.user) == [1000])
    // Who waits is counted too.
    for number in UInt64(0)..<30 {
      _ = try rivals.send(.setlkw, 0, owner: 100 + number, Self.write, 6000, 6000, user: 1000)
    }
    let refused = try rivals.send(.setlkw, 0, owner: 200, Self.write, 6000, 6000, user: 1000)
    #expect(try rivals.answers(0)[refused] == ENOLCK)
    #expect(try set(1000, Self.none, 0, UInt64(Int64.max)) == 0)
    #expect(budget.count(.locks, of: Payer(user: 1000)) == 0)
    rivals.kernels[0].session.finish()
    #expect(budget.total(.locks) == 0 && budget.total(.waiting) == 0 && rivals.tree.volume.locks.count == 0)
  }

  @Test func closingDropsWhatWasTakenThroughIt() throws {
    let tree = try Tree()
    try tree.temporary.write("x", to: "Users/Shared/a")
    let view = tree.view
    let node = try view.node("Users/Shared/a", by: .me)
    let (first, second) = (try open(view, node), try open(view, node))
    func lock(_ handle: HandleID, owner: UInt64, _ range: LockRange) throws {
      _ = try view.setLock(node, handle: handle, owner: LockOwner(owner), to: range, parking: nil, by: .me)
    }
    try lock(first, owner: 1, LockRange(kind: .read, first: 0, last: 4, pid: 1))
    try lock(second, owner: 2, LockRange(kind: .read, first: 0, last: 4, pid: 2))
    _ = try view.setFlock(node, handle: first, owner: LockOwner(9), to: .read, parking: nil, by: .me)
    #expect(view.counts.locks == 3)
    try view.flush(node, handle: second, owner: LockOwner(2))
    #expect(view.counts.locks == 2)
    view.release(node, handle: first, flockOwner: nil)
    #expect(view.counts.locks == 0)
    view.release(node, handle: second, flockOwner: nil)
  }

  private func open(_ view: View, _ node: NodeID) throws -> HandleID {
    try view.open(node, flags: O_RDWR, clearsSetID: false, by: .me).handle
  }
}

/// Open files by their ids.
struct HandleTableTests {
  @Test func idsFindOnlyWhatTheyWereGivenFor() throws {
    var random = SeededRandom(seed: 3)
    let table = HandleTable<Numbered>()
    var open: [HandleID: Int] = [:]
    var closed: [HandleID] = []
    for number in 0..<20_000 {
      if Bool.random(using: &random) || open.isEmpty {
        let id = table.add(Numbered(number: number))
        #expect(open.updateValue(number, forKey: id) == nil && !closed.suffix(50).contains(id))
      } else if let (id, item) = open.randomElement(using: &random) {
        #expect(try table.find(id).number == item)
        #expect(table.remove(id)?.number == item)
        table.forget(id)
        open[id] = nil
        closed.append(id)
      }
      if let id = closed.randomElement(using: &random) {
        #expect(throws: Errno.EBADF) { _ = try table.find(id) }
        #expect(table.remove(id) == nil)
        table.forget(id)
      }
    }
    #expect(table.count == open.count)
    for raw in [0, 1, .max, UInt64(UInt32.max)] where open[HandleID(raw)] == nil {
      #expect(throws: Errno.EBADF) { _ = try table.find(HandleID(raw)) }
    }
  }
}
