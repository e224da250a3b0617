// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Two views of one volume, each with a kernel of its own that asks for locks.
private final class Rivals {
  let tree: Tree
  let views: [View]
  let kernels: [KernelEnd]
  private var last: UInt64 = 100

  init() throws {
    tree = try Tree()
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
    flock: Bool = false, file: String = "a"
  ) throws -> UInt64 {
    last += 2
    let node = try views[view].node("Users/Shared/" + file)
    let body = long(1, owner, first, end) + words(UInt32(kind), 77, flock ? 1 : 0, 0)
    kernels[view].process(Message(opcode, unique: last, node: node.raw, body))
    return last
  }

  /// What has been answered: the number of the request and the errno.
  func answers(_ view: Int) throws -> [UInt64: Int32] {
    Dictionary(uniqueKeysWithValues: try kernels[view].replies().map { ($0.unique, -$0.code) })
  }

  /// Asks without waiting; gives the errno.
  func set(
    _ view: Int, owner: UInt64, _ kind: Int32, _ first: UInt64 = 0, _ end: UInt64 = UInt64(Int64.max),
    flock: Bool = false,
    file: String = "a"
  ) throws -> Int32 {
    let unique = try send(.setlk, view, owner: owner, kind, first, end, flock: flock, file: file)
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

  @Test func closingDropsWhatWasTakenThroughIt() throws {
    let tree = try Tree()
    try tree.temporary.write("x", to: "Users/Shared/a")
    let view = tree.view
    let node = try view.node("Users/Shared/a", by: .me)
    let (first, second) = (try open(view, node), try open(view, node))
    func lock(_ handle: HandleID, owner: UInt64, _ range: LockRange) throws {
      _ = try view.setLock(node, handle: handle, owner: LockOwner(owner), to: range, parking: nil)
    }
    try lock(first, owner: 1, LockRange(kind: .read, first: 0, last: 4, pid: 1))
    try lock(second, owner: 2, LockRange(kind: .read, first: 0, last: 4, pid: 2))
    _ = try view.setFlock(node, handle: first, owner: LockOwner(9), to: .read, parking: nil)
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
    let table = HandleTable<Int>()
    var open: [HandleID: Int] = [:]
    var closed: [HandleID] = []
    for number in 0..<20_000 {
      if Bool.random(using: &random) || open.isEmpty {
        let id = table.add(number)
        #expect(open.updateValue(number, forKey: id) == nil && !closed.suffix(50).contains(id))
      } else if let (id, item) = open.randomElement(using: &random) {
        #expect(try table.find(id) == item)
        #expect(table.remove(id) == item)
        open[id] = nil
        closed.append(id)
      }
      if let id = closed.randomElement(using: &random) {
        #expect(throws: Errno.EBADF) { _ = try table.find(id) }
        #expect(table.remove(id) == nil)
      }
    }
    #expect(table.count == open.count)
    for raw in [0, 1, .max, UInt64(UInt32.max)] where open[HandleID(raw)] == nil {
      #expect(throws: Errno.EBADF) { _ = try table.find(HandleID(raw)) }
    }
  }
}
