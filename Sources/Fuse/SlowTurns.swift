// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What slow work is, by what it waits for, and by what the kernel holds meanwhile.
package enum SlowKind: Int, CaseIterable, Sendable {
  /// It changes names, or finds one: the kernel holds a directory, which others need.
  case names
  /// It waits for a disk, and the kernel holds a directory.
  case directories
  /// It waits for a disk, and the kernel holds a file.
  case files
  /// It waits for a disk; of what it needs others need little.
  case disk
  /// It keeps a CPU busy.
  case long
}

/// Turns for slow work; each kind has its own, and none waits for another.
///
/// Of what waits for a disk one user may have half of the threads, and more of what the kernel holds
/// something for: a disk serves several about as fast as one. Of what keeps a CPU busy, that would be all
/// CPUs: there one user has half of the CPUs, and all users together have no more threads than there are
/// CPUs. Of names each user has one piece of work under way.
struct SlowTurns<Work: Sendable> {
  /// A piece of work that is under way.
  struct Turn: Sendable {
    let work: Work
    fileprivate let user: UInt32
    let kind: SlowKind
  }
  private struct OneKind {
    var turns: Turns<Work>
    var underWay = 0
    let limit: Int
  }

  private var kinds: [OneKind]
  /// Whether work that keeps a CPU busy comes before what waits for a disk the next time.
  private var isLongNext = false

  init(threads: Int, cpus: Int) {
    kinds = SlowKind.allCases.map { kind in
      let (share, limit) =
        switch kind {
        case .names: (1, 4)
        case .directories: (16, 32)
        case .files: (16, 48)
        case .disk: (threads / 2, threads)
        case .long: (cpus / 2, cpus)
        }
      return OneKind(turns: Turns(share: max(share, 1)), limit: max(limit, 1))
    }
  }

  /// How much may be under way altogether.
  var limit: Int { kinds.reduce(0) { $0 + $1.limit } }

  /// False if more than `limit` of that kind wait for that user, if there is one.
  mutating func add(
    _ work: Work, _ user: UInt32, _ connection: UInt64, _ kind: SlowKind, limit: Int? = nil
  ) -> Bool {
    if let limit, kinds[kind.rawValue].turns.waiting(of: user) >= limit { return false }
    kinds[kind.rawValue].turns.add(work, user, connection)
    return true
  }

  /// Whether a user has work that waits or is under way.
  func has(_ user: UInt32) -> Bool { kinds.contains { $0.turns.has(user) } }
  func has(_ user: UInt32, _ kind: SlowKind) -> Bool { kinds[kind.rawValue].turns.has(user) }

  /// Whether one more thread would find something of that kind to do.
  func hasNext(_ kind: SlowKind) -> Bool {
    let kind = kinds[kind.rawValue]
    return kind.underWay < kind.limit && kind.turns.hasNext
  }

  /// The next piece of work; nil if there is none, or all who have some have their share under way.
  mutating func next() -> Turn? {
    let isLongFirst = isLongNext
    isLongNext.toggle()
    return next(.names) ?? next(.directories) ?? next(.files)
      ?? (isLongFirst ? next(.long) ?? next(.disk) : next(.disk) ?? next(.long))
  }

  private mutating func next(_ kind: SlowKind) -> Turn? {
    guard kinds[kind.rawValue].underWay < kinds[kind.rawValue].limit,
      let next = kinds[kind.rawValue].turns.next()
    else { return nil }
    kinds[kind.rawValue].underWay += 1
    return Turn(work: next.work, user: next.user, kind: kind)
  }

  /// A piece of work that ``next()`` gave is done.
  mutating func done(_ turn: Turn) {
    kinds[turn.kind.rawValue].underWay -= 1
    kinds[turn.kind.rawValue].turns.done(turn.user)
  }
}
