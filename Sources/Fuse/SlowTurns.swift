// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Turns for work that waits for a disk, and for work that keeps a CPU busy.
///
/// Of the first kind one user may have half of the threads. Of the second, that would be all CPUs: there one
/// user has half of the CPUs, and all users together have no more threads than there are CPUs.
struct SlowTurns<Work: Sendable> {
  /// A piece of work that is under way.
  struct Turn: Sendable {
    let work: Work
    fileprivate let user: UInt32
    fileprivate let isLong: Bool
  }

  private var waiting: Turns<Work>
  private var long: Turns<Work>
  private var longUnderWay = 0
  private let longLimit: Int
  /// Whether work of the second kind comes first the next time.
  private var isLongNext = false

  init(threads: Int, cpus: Int) {
    waiting = Turns(share: max(threads / 2, 1))
    long = Turns(share: max(cpus / 2, 1))
    longLimit = max(cpus, 1)
  }

  /// `isLong` says that it keeps a CPU busy.
  mutating func add(_ work: Work, _ user: UInt32, _ connection: UInt64, isLong: Bool) {
    if isLong { long.add(work, user, connection) } else { waiting.add(work, user, connection) }
  }

  /// Whether a user has work that waits or is under way.
  func has(_ user: UInt32) -> Bool { waiting.has(user) || long.has(user) }

  /// The next piece of work; nil if there is none, or all who have some have their share under way.
  mutating func next() -> Turn? {
    let isLongFirst = isLongNext
    isLongNext.toggle()
    if isLongFirst, let turn = nextLong() { return turn }
    if let next = waiting.next() { return Turn(work: next.work, user: next.user, isLong: false) }
    return isLongFirst ? nil : nextLong()
  }

  private mutating func nextLong() -> Turn? {
    guard longUnderWay < longLimit, let next = long.next() else { return nil }
    longUnderWay += 1
    return Turn(work: next.work, user: next.user, isLong: true)
  }

  /// A piece of work that ``next()`` gave is done.
  mutating func done(_ turn: Turn) {
    guard turn.isLong else { return waiting.done(turn.user) }
    longUnderWay -= 1
    long.done(turn.user)
  }
}
