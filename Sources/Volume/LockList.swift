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
    let key = HandleOfView(view: lock.holder.view, handle: lock.handle)
    guard let count = handles[key]?[lock.holder] else { return }
    handles[key]?[lock.holder] = count > 1 ? count - 1 : nil
    if handles[key]?.isEmpty == true { handles[key] = nil }
  }
}

extension LockRange {
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
