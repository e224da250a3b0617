// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
@testable internal import Volume

/// Who is told that they would wait for ever, and when: as the kernel tells it (fs/locks.c).
struct DeadlockTests {
  private static let read = Int32(F_RDLCK)
  private static let write = Int32(F_WRLCK)
  private static let none = Int32(F_UNLCK)

  /// Whose it is: which view, and which owner there.
  private typealias Owner = (view: Int, owner: UInt64)
  private static let owners: [Owner] = [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3)]

  /// All that has been answered by now, through both views.
  private func answers(_ rivals: Rivals) throws -> [UInt64: Int32] {
    try rivals.answers(0).merging(try rivals.answers(1)) { $1 }
  }

  /// Three readers of a byte, two of whom want to write; the third has come first, in between or last.
  @Test(arguments: [[2, 0, 1], [0, 2, 1], [0, 1, 2]], [[0, 1], [1, 0]])
  func circleBehindAnotherReaderIsFound(arrivals: [Int], writers: [Int]) throws {
    let rivals = try Rivals()
    func send(_ opcode: Opcode, _ number: Int, _ kind: Int32) throws -> UInt64 {
      let owner = Self.owners[number]
      return try rivals.send(opcode, owner.view, owner: owner.owner, kind, 0, 0)
    }
    for number in arrivals { _ = try send(.setlk, number, Self.read) }
    #expect(try answers(rivals).values.allSatisfy { $0 == 0 })
    let first = try send(.setlkw, writers[0], Self.write)
    #expect(try answers(rivals).isEmpty)
    let second = try send(.setlkw, writers[1], Self.write)
    // The kernel's list has them in the order in which they came, and a waiter waits for the first that is
    // in its way.
    let isFoundAtOnce =
      arrivals.first { $0 != writers[0] } == writers[1]
      && arrivals.first { $0 != writers[1] } == writers[0]
    var told = try answers(rivals)
    #expect(told == (isFoundAtOnce ? [second: EDEADLK] : [:]))
    let release = try send(.setlk, 2, Self.none)
    told = told.merging(try answers(rivals)) { $1 }
    told[release] = nil
    // One of them is told, and has only to give back what it has.
    #expect(told.count == 1 && told.values.first == EDEADLK, "\(told)")
    let (loser, winner) = told[second] != nil ? (writers[1], first) : (writers[0], second)
    let given = try send(.setlk, loser, Self.none)
    #expect(try answers(rivals) == [given: 0, winner: 0])
    #expect(rivals.tree.volume.locks.waits.counts == (0, 0))
  }

  /// A lock for reading that takes the place of one for writing lets in who waits before.
  @Test func waiterWhoGivesSomethingBackLetsOthersIn() throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 1, Self.write, 0, 9) == 0)
    #expect(try rivals.set(1, owner: 9, Self.write, 15, 20) == 0)
    let reader = try rivals.send(.setlkw, 1, owner: 2, Self.read, 0, 5)
    let downgrade = try rivals.send(.setlkw, 0, owner: 1, Self.read, 0, 20)
    #expect(try answers(rivals).isEmpty)
    let release = try rivals.send(.setlk, 1, owner: 9, Self.none)
    #expect(try answers(rivals) == [release: 0, downgrade: 0, reader: 0])
  }

  /// How many in a circle are found: as many as the kernel finds.
  @Test(arguments: [(2, true), (12, true), (13, false)])
  func circlesAreFollowedAsFarAsInTheKernel(size: Int, isFound: Bool) throws {
    let rivals = try Rivals()
    for number in 0..<size {
      let at = UInt64(number)
      #expect(try rivals.set(number % 2, owner: 100 + at, Self.write, at, at) == 0)
    }
    var last: UInt64 = 0
    for number in 0..<size {
      #expect(try answers(rivals).isEmpty)
      let next = UInt64((number + 1) % size)
      last = try rivals.send(.setlkw, number % 2, owner: 100 + UInt64(number), Self.write, next, next)
    }
    #expect(try answers(rivals) == (isFound ? [last: EDEADLK] : [:]))
  }

  /// A circle of those who lock whole files is not looked for; nor does the kernel look for it.
  @Test func circleOfWholeFilesWaits() throws {
    let rivals = try Rivals()
    #expect(try rivals.set(0, owner: 1, Self.write, flock: true, file: "a") == 0)
    #expect(try rivals.set(1, owner: 2, Self.write, flock: true, file: "b") == 0)
    let first = try rivals.send(.setlkw, 0, owner: 1, Self.write, flock: true, file: "b")
    let second = try rivals.send(.setlkw, 1, owner: 2, Self.write, flock: true, file: "a")
    #expect(try answers(rivals).isEmpty)
    rivals.interrupt(0, first)
    rivals.interrupt(1, second)
    #expect(try answers(rivals) == [first: EINTR, second: EINTR])
  }

  /// Many locks and many who wait: what is released is given out in few steps, whoever has the others.
  @Test func manyLocksAndWaitersAreServed() throws {
    let rivals = try Rivals()
    let count: UInt64 = 600
    for number in 0..<count {
      #expect(try rivals.set(0, owner: number % 7 + 1, Self.write, 2 * number, 2 * number) == 0)
    }
    let waiters = try (0..<count).map { number in
      try rivals.send(.setlkw, 1, owner: 1000 + number, Self.write, 2 * number, 2 * number + 1)
    }
    #expect(rivals.tree.volume.locks.waits.counts == (Int(count), Int(count)))
    // What nobody reads would soon be in the way of more.
    var served: [UInt64: Int32] = [:]
    for owner in 1...7 as ClosedRange<UInt64> {
      #expect(try rivals.set(0, owner: owner, Self.none) == 0)
      served.merge(try rivals.answers(1)) { $1 }
    }
    #expect(served == Dictionary(uniqueKeysWithValues: waiters.map { ($0, 0) }))
    #expect(rivals.tree.volume.locks.waits.counts == (0, 0))
  }

  /// What five owners in two views do in random order, beside a model that has an entry for each byte.
  ///
  /// Every answer is the model's, and comes when that says so. In the end nobody waits.
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func answersAreThoseOfTheModel(seed: UInt64) throws {
    var random = SeededRandom(seed: seed)
    let rivals = try Rivals()
    var model = LockModel(owners: Self.owners.count)
    var requests: [UInt64: Int] = [:]
    var (deadlocks, waits) = (0, 0)
    func step(_ number: Int, _ kind: LockRange.Kind, _ first: Int, _ last: Int) throws {
      let owner = Self.owners[number]
      let raw = kind == .read ? Self.read : kind == .write ? Self.write : Self.none
      let unique = try rivals.send(
        .setlkw, owner.view, owner: owner.owner, raw, UInt64(first), UInt64(last))
      requests[unique] = number
      let isTrueCircle = model.wouldEndInCircle(number, kind, first...last)
      let expected = model.lock(number, kind, first...last)
      let found = try answers(rivals).map { (requests[$0.key] ?? -1, $0.value) }.sorted { $0 < $1 }
      #expect(found.map(\.0) == expected.map(\.owner) && found.map(\.1) == expected.map(\.errno), "\(number)")
      for answer in expected where answer.errno == EDEADLK {
        deadlocks += 1
        if answer.owner == number { #expect(isTrueCircle, "nobody waits for \(number)") }
      }
      if model.isWaiting(number) { waits += 1 }
    }
    for _ in 0..<120 {
      let free = Self.owners.indices.filter { !model.isWaiting($0) }
      guard let number = free.randomElement(using: &random) else { break }
      let first = Int.random(in: 0..<4, using: &random)
      let last = Int.random(in: first..<4, using: &random)
      let kind: LockRange.Kind = [.read, .read, .write, .write, .none].randomElement(using: &random) ?? .none
      try step(number, kind, first, last)
    }
    // Whoever does not wait gives back what they have: that must let all go on.
    for _ in Self.owners {
      for number in Self.owners.indices where !model.isWaiting(number) { try step(number, .none, 0, 3) }
    }
    #expect(!Self.owners.indices.contains { model.isWaiting($0) })
    #expect(rivals.tree.volume.locks.waits.counts == (0, 0) && rivals.tree.volume.locks.count == 0)
    #expect(deadlocks > 0 && waits > 5, "\(deadlocks) of \(waits)")
  }
}

/// Locks of a few bytes, by what fs/locks.c says: a waiter waits for the first in its way, in the order in
/// which their owners came; it is looked at again when that one is in its way no more.
private struct LockModel {
  struct Answer {
    let owner: Int
    let errno: Int32
  }
  private struct Waiter {
    let owner: Int
    let kind: LockRange.Kind
    let range: ClosedRange<Int>
    var blocker: Int?
  }
  private static let bytes = 4
  private var kinds: [[LockRange.Kind]]
  private var arrivals: [Int] = []
  private var waiters: [Waiter] = []

  init(owners: Int) {
    kinds = .init(repeating: .init(repeating: .none, count: Self.bytes), count: owners)
  }

  func isWaiting(_ owner: Int) -> Bool { waiters.contains { $0.owner == owner } }

  private func stands(_ other: Int, against kind: LockRange.Kind, _ range: ClosedRange<Int>) -> Bool {
    kind != .none
      && range.contains { kinds[other][$0] == .write || kinds[other][$0] == .read && kind == .write }
  }

  private func blockers(_ owner: Int, _ kind: LockRange.Kind, _ range: ClosedRange<Int>) -> [Int] {
    arrivals.filter { $0 != owner && stands($0, against: kind, range) }
  }

  /// Whether somebody in the way waits, over whomever, for the owner: by all who are in anybody's way.
  func wouldEndInCircle(_ owner: Int, _ kind: LockRange.Kind, _ range: ClosedRange<Int>) -> Bool {
    var (next, seen) = (blockers(owner, kind, range), Set<Int>())
    while let current = next.popLast() {
      if current == owner { return true }
      guard seen.insert(current).inserted else { continue }
      for waiter in waiters where waiter.owner == current {
        next += blockers(current, waiter.kind, waiter.range)
      }
    }
    return false
  }

  private func isCircle(_ owner: Int, _ blocker: Int) -> Bool {
    var current: Int? = blocker
    for _ in waiters {
      guard let holder = current else { return false }
      current = waiters.first { $0.owner == holder }?.blocker
      if current == owner { return true }
    }
    return false
  }

  private mutating func apply(_ owner: Int, _ kind: LockRange.Kind, _ range: ClosedRange<Int>) {
    for byte in range { kinds[owner][byte] = kind }
    let hasAny = kinds[owner].contains { $0 != .none }
    if !hasAny { arrivals.removeAll { $0 == owner } }
    if hasAny, !arrivals.contains(owner) { arrivals.append(owner) }
  }

  mutating func lock(_ owner: Int, _ kind: LockRange.Kind, _ range: ClosedRange<Int>) -> [Answer] {
    if let blocker = blockers(owner, kind, range).first {
      if isCircle(owner, blocker) { return [Answer(owner: owner, errno: EDEADLK)] }
      waiters.append(Waiter(owner: owner, kind: kind, range: range, blocker: blocker))
      return []
    }
    apply(owner, kind, range)
    return ([Answer(owner: owner, errno: 0)] + settle()).sorted { $0.owner < $1.owner }
  }

  private mutating func settle() -> [Answer] {
    var answers: [Answer] = []
    while true {
      for index in waiters.indices {
        let waiter = waiters[index]
        guard let blocker = waiter.blocker, !stands(blocker, against: waiter.kind, waiter.range) else {
          continue
        }
        waiters[index].blocker = nil
      }
      guard waiters.contains(where: { $0.blocker == nil }) else { return answers }
      for waiter in waiters where waiter.blocker == nil {
        guard let index = waiters.firstIndex(where: { $0.owner == waiter.owner }) else { continue }
        if let blocker = blockers(waiter.owner, waiter.kind, waiter.range).first {
          if isCircle(waiter.owner, blocker) {
            waiters.remove(at: index)
            answers.append(Answer(owner: waiter.owner, errno: EDEADLK))
          } else {
            waiters[index].blocker = blocker
          }
        } else {
          waiters.remove(at: index)
          apply(waiter.owner, waiter.kind, waiter.range)
          answers.append(Answer(owner: waiter.owner, errno: 0))
        }
      }
    }
  }
}
