// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

/// The locks of one object, and who waits for some.
struct ObjectLocks {
  struct Waiter {
    let style: LockTable.Style
    let lock: HeldLock
    let reply: ParkedReply
    /// The holder whose lock is waited for; nil if the waiter is to be looked at.
    var blocker: LockHolder?
  }
  var posix = LockList()
  var flock = LockList()
  var waiters: [Waiter] = []
  /// How many of those may have an answer already: they go when they are many, or are next come across.
  var abandoned = 0

  var isIdle: Bool { posix.isEmpty && flock.isEmpty && waiters.isEmpty }

  /// The holder that stands against what one waits for.
  ///
  /// Not by the subscript, which would copy a list for each of thousands who wait.
  func blocker(of waiter: Waiter) -> LockHolder? {
    let (range, holder) = (waiter.lock.range, waiter.lock.holder)
    return switch waiter.style {
    case .posix: posix.blocker(of: range, by: holder)
    case .flock: flock.blocker(of: range, by: holder)
    }
  }

  /// Whether the holder that one waits for still stands against it.
  func isStillBlocked(_ waiter: Waiter) -> Bool {
    guard let blocker = waiter.blocker else { return false }
    let (range, holder) = (waiter.lock.range, waiter.lock.holder)
    return switch waiter.style {
    case .posix: posix.isBlocked(range, by: blocker, holder)
    case .flock: flock.isBlocked(range, by: blocker, holder)
    }
  }

  subscript(style: LockTable.Style) -> LockList {
    _read {
      switch style {
      case .posix: yield posix
      case .flock: yield flock
      }
    }
    _modify {
      switch style {
      case .posix: yield &posix
      case .flock: yield &flock
      }
    }
  }
}

/// Objects that have locks, each with a lock of its own for its state: whoever works on one object waits for
/// nobody who works on another.
final class LockedObjects: Sendable {
  private final class Object: Sendable {
    let locks = OrderedMutex(.objectLocks, ObjectLocks())
  }
  private struct Entry {
    let object: Object
    /// How many are at it.
    var users = 0
  }
  private final class Shard: Sendable {
    let entries = OrderedMutex<[ObjectNumber: Entry]>(.lockedObjects, [:])
  }
  private let shards = (0..<64).map { _ in Shard() }
  /// So that nobody can know which objects are together.
  private let seed = UInt64.random(in: 0 ... .max)

  /// Works on an object's locks; nil if it has none, unless it is to be `made`.
  func with<Result>(
    _ number: ObjectNumber, made: Bool = false, _ body: (inout ObjectLocks) throws(Errno) -> Result
  ) throws(Errno) -> Result? {
    let shard = shard(number)
    let found = shard.entries.withLock { entries -> Object? in
      guard made || entries[number] != nil else { return nil }
      var entry = entries[number] ?? Entry(object: Object())
      entry.users += 1
      entries[number] = entry
      return entry.object
    }
    guard let found else { return nil }
    defer { leave(number, shard) }
    return try found.locks.withLock { (locks) throws(Errno) in try body(&locks) }
  }

  private func leave(_ number: ObjectNumber, _ shard: Shard) {
    shard.entries.withLock { entries in
      guard var entry = entries[number] else { return }
      entry.users -= 1
      // Nobody is at it, so its lock is free.
      let isIdle = entry.users == 0 && entry.object.locks.withLock { $0.isIdle }
      entries[number] = isIdle ? nil : entry
    }
  }

  /// All that have locks or waiters now.
  var numbers: [ObjectNumber] { shards.flatMap { $0.entries.withLock { Array($0.keys) } } }

  private func shard(_ number: ObjectNumber) -> Shard {
    let hash = (number.inode ^ seed) &* 0x9e37_79b9_7f4a_7c15 ^ UInt64(number.device)
    return shards[Int(hash >> 58)]
  }
}
