// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO

/// Whose a lock is.
///
/// The kernel numbers owners for each connection on its own.
struct LockHolder: Hashable {
  let view: UInt32
  let owner: LockOwner
}

/// A lock that someone has.
struct HeldLock {
  let holder: LockHolder
  /// The open file that it was taken through; when that goes, so does the lock.
  let handle: HandleID
  var range: LockRange
}

/// The locks of one kind (byte ranges, or whole files) on one object, without overlaps for any one holder.
struct LockList {
  private(set) var held: [HeldLock] = []

  var isEmpty: Bool { held.isEmpty }

  /// The first lock of someone else that stands against `wanted`.
  func conflict(with wanted: LockRange, by holder: LockHolder) -> HeldLock? {
    guard wanted.kind != .none else { return nil }
    return held.first { lock in
      lock.holder != holder && lock.range.overlaps(wanted)
        && (lock.range.kind == .write || wanted.kind == .write)
    }
  }

  /// Gives `holder` exactly `range`: what it had there before is replaced, split at the ends, and joined to its like.
  mutating func set(_ range: LockRange, for holder: LockHolder, through handle: HandleID) {
    var kept: [HeldLock] = []
    var added = range
    for lock in held {
      guard lock.holder == holder else {
        kept.append(lock)
        continue
      }
      if lock.range.kind == added.kind, lock.range.touches(added) {
        added.first = min(added.first, lock.range.first)
        added.last = max(added.last, lock.range.last)
        continue
      }
      for rest in lock.range.subtracting(added) {
        kept.append(HeldLock(holder: holder, handle: lock.handle, range: rest))
      }
    }
    if added.kind != .none { kept.append(HeldLock(holder: holder, handle: handle, range: added)) }
    held = kept
  }

  mutating func removeAll(where gone: (HeldLock) -> Bool) { held.removeAll(where: gone) }
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
