// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO

/// Whose a lock is.
///
/// The kernel numbers owners for each connection on its own.
struct LockHolder: Hashable, Comparable {
  let view: UInt32
  let owner: LockOwner

  static func < (a: LockHolder, b: LockHolder) -> Bool {
    a.view != b.view ? a.view < b.view : a.owner.raw < b.owner.raw
  }
}

/// A lock that someone has.
struct HeldLock {
  let holder: LockHolder
  /// The open file that it was taken through; when that goes, so does the lock.
  let handle: HandleID
  var range: LockRange
  /// Who took it.
  var payer = Payer(user: 0)
  /// Where it is noted for the next worker; -1 if nowhere.
  var kept: Int32 = -1
}

/// The locks of one kind (byte ranges, or whole files) on one object, without overlaps for any one holder.
struct LockList {
  private var byPlace = LockTree(.byPlace)
  private var byHolder = LockTree(.byHolder)
  /// Who has locks through which open files, and how many: a close looks at no others.
  private var handles: [HandleOfView: [LockHolder: Int]] = [:]

  /// Who has locks: in which order they came, and how many they have.
  private var holders: [LockHolder: (arrival: UInt64, count: Int)] = [:]
  private var arrivals: UInt64 = 0

  private struct HandleOfView: Hashable {
    let view: UInt32
    let handle: HandleID
  }

  var isEmpty: Bool { byPlace.count == 0 }

  /// All of them.
  var held: [HeldLock] { byPlace.all }

  /// The first lock of someone else that stands against `wanted`.
  func conflict(with wanted: LockRange, by holder: LockHolder) -> HeldLock? {
    wanted.kind == .none ? nil : byPlace.conflict(with: wanted, by: holder)
  }

  /// How many locks are looked at one by one for one who waits.
  private static let maxExamined = 64

  /// The holder that stands against `wanted`; of several the one whose first lock came first, as in the
  /// kernel's list.
  ///
  /// Where there are many locks it is any of them, which takes few steps.
  func blocker(of wanted: LockRange, by holder: LockHolder) -> LockHolder? {
    guard let first = conflict(with: wanted, by: holder) else { return nil }
    guard byPlace.count <= Self.maxExamined else { return first.holder }
    let others = byPlace.all.filter { $0.holder != holder && $0.range.excludes(wanted) }.map(\.holder)
    return others.min { arrival(of: $0) < arrival(of: $1) } ?? first.holder
  }

  /// Whether a holder that stood against `wanted` still does; where there are many locks, whether it is the
  /// first that does.
  func isBlocked(_ wanted: LockRange, by blocker: LockHolder, _ holder: LockHolder) -> Bool {
    guard let first = conflict(with: wanted, by: holder) else { return false }
    if first.holder == blocker { return true }
    guard byPlace.count <= Self.maxExamined else { return false }
    return byPlace.all.contains { $0.holder == blocker && $0.range.excludes(wanted) }
  }

  /// Whether someone has any locks.
  func has(_ holder: LockHolder) -> Bool { holders[holder] != nil }

  private func arrival(of holder: LockHolder) -> UInt64 { holders[holder]?.arrival ?? .max }

  /// What is to go and what is to come.
  struct Change {
    var removed: [HeldLock] = []
    var added: [HeldLock] = []
  }

  /// What gives a holder exactly the lock's range: what they had there before is replaced, split at the ends,
  /// and joined to its like.
  func change(to lock: HeldLock) -> Change {
    var change = Change()
    var new = lock
    for old in byHolder.touching(lock.range, of: lock.holder) {
      if old.range.kind == new.range.kind {
        new.range.first = min(new.range.first, old.range.first)
        new.range.last = max(new.range.last, old.range.last)
        change.removed.append(old)
      } else if old.range.overlaps(lock.range) {
        change.removed.append(old)
        for rest in old.range.subtracting(lock.range) {
          var kept = old
          kept.range = rest
          change.added.append(kept)
        }
      }
    }
    if new.range.kind != .none { change.added.append(new) }
    return change
  }

  mutating func make(_ change: Change) {
    // Whoever has a lock before and after keeps their place.
    for lock in change.added {
      if holders[lock.holder] == nil {
        arrivals += 1
        holders[lock.holder] = (arrivals, 0)
      }
      holders[lock.holder]?.count += 1
    }
    for lock in change.removed { remove(lock) }
    for lock in change.added {
      byPlace.insert(lock)
      byHolder.insert(lock)
      handles[HandleOfView(view: lock.holder.view, handle: lock.handle), default: [:]][
        lock.holder, default: 0] += 1
    }
  }

  /// What one holder has.
  func all(of holder: LockHolder) -> [HeldLock] {
    byHolder.all { $0 == holder ? .both : $0 < holder ? .after : .before }
  }

  /// What was taken through a view.
  func all(of view: UInt32) -> [HeldLock] {
    byHolder.all { $0.view == view ? .both : $0.view < view ? .after : .before }
  }

  /// What was taken through an open file.
  func all(through handle: HandleID, of view: UInt32) -> [HeldLock] {
    let holders = handles[HandleOfView(view: view, handle: handle)]
    return (holders ?? [:]).keys.flatMap { holder in all(of: holder).filter { $0.handle == handle } }
  }

  private mutating func remove(_ lock: HeldLock) {
    byPlace.remove(lock)
    byHolder.remove(lock)
    let left = (holders[lock.holder]?.count ?? 1) - 1
    if left > 0 { holders[lock.holder]?.count = left } else { holders[lock.holder] = nil }
    let key = HandleOfView(view: lock.holder.view, handle: lock.handle)
    guard let count = handles[key]?[lock.holder] else { return }
    handles[key]?[lock.holder] = count > 1 ? count - 1 : nil
    if handles[key]?.isEmpty == true { handles[key] = nil }
  }
}

extension LockRange {
  /// Whether somebody else's lock of this range stands against a wanted one.
  func excludes(_ wanted: LockRange) -> Bool {
    overlaps(wanted) && (kind == .write || wanted.kind == .write)
  }

  func overlaps(_ other: LockRange) -> Bool { first <= other.last && other.first <= last }

  /// Whether the two overlap or one begins right after the other ends.
  func touches(_ other: LockRange) -> Bool {
    let endsBefore = last < other.first && last &+ 1 < other.first
    let beginsAfter = other.last < first && other.last &+ 1 < first
    return !endsBefore && !beginsAfter
  }

  /// What is left of this range outside of `other`.
  func subtracting(_ other: LockRange) -> [LockRange] {
    guard overlaps(other) else { return [self] }
    var rest: [LockRange] = []
    if first < other.first {
      rest.append(LockRange(kind: kind, first: first, last: other.first - 1, pid: pid))
    }
    if last > other.last {
      rest.append(LockRange(kind: kind, first: other.last + 1, last: last, pid: pid))
    }
    return rest
  }

  /// The whole file, however far it reaches; what flock(2) locks.
  static func whole(_ kind: Kind) -> LockRange { LockRange(kind: kind, first: 0, last: .max, pid: 0) }
}
