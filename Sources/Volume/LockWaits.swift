// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

/// Who waits for whose lock, to find circles of those who wait for each other.
///
/// As in the kernel (`posix_locks_deadlock` in fs/locks.c), each waiter is noted to wait for one holder,
/// although several may stand against it. That finds every circle, because a waiter is looked at again when
/// the holder that it is noted for does not stand against it any more: then it is granted, or noted for
/// another holder, or told that it would wait for ever.
///
/// Notes are made and removed while the locks of the object that is waited for are held.
final class LockWaits: Sendable {
  private struct Wait {
    let holder: LockHolder
    let object: ObjectNumber
    let payer: Payer
  }
  private struct State {
    var waits: [ObjectIdentifier: Wait] = [:]
    /// Whom a holder waits for; a process of several threads may wait for several.
    var blockers: [LockHolder: [ObjectIdentifier: LockHolder]] = [:]

    mutating func unblock(_ key: ObjectIdentifier) {
      guard let holder = waits[key]?.holder else { return }
      blockers[holder]?[key] = nil
      if blockers[holder]?.isEmpty == true { blockers[holder] = nil }
    }

    /// Whether `other` waits, over however many others, for something that `holder` has.
    ///
    /// The kernel follows eleven waits; so do we, and of a process with many threads no more than sixteen.
    func isCircle(_ holder: LockHolder, _ other: LockHolder) -> Bool {
      var next: Set = [other]
      var seen = next
      for _ in 0..<11 {
        var found: Set<LockHolder> = []
        for current in next { found.formUnion((blockers[current] ?? [:]).values.prefix(16)) }
        if found.contains(holder) { return true }
        next = Set(found.subtracting(seen).prefix(64))
        if next.isEmpty { return false }
        seen.formUnion(next)
      }
      return false
    }
  }
  private let state = OrderedMutex(.lockWaits, State())

  /// Whether `holder` would wait for ever if it began to wait for `blocker`.
  func wouldBeCircle(_ holder: LockHolder, waitingFor blocker: LockHolder) -> Bool {
    state.withLock { $0.isCircle(holder, blocker) }
  }

  /// From here on the one who waits can be found by their reply.
  func note(_ reply: ParkedReply, of lock: HeldLock, on object: ObjectNumber) {
    state.withLock {
      $0.waits[ObjectIdentifier(reply)] = Wait(holder: lock.holder, object: object, payer: lock.payer)
    }
  }

  /// Notes whom one waits for; false, and nothing is noted, if that would never end.
  func block(_ reply: ParkedReply, on blocker: LockHolder) -> Bool {
    let key = ObjectIdentifier(reply)
    return state.withLock { state in
      // It may have been interrupted just now, and then nobody would remove the note.
      guard let wait = state.waits[key] else { return true }
      guard !state.isCircle(wait.holder, blocker) else { return false }
      state.blockers[wait.holder, default: [:]][key] = blocker
      return true
    }
  }

  /// The holder that one was noted to wait for stands against them no more.
  func unblock(_ reply: ParkedReply) { state.withLock { $0.unblock(ObjectIdentifier(reply)) } }

  func object(of reply: ParkedReply) -> ObjectNumber? {
    state.withLock { $0.waits[ObjectIdentifier(reply)]?.object }
  }

  /// Whoever has this reply waits no more; gives who was charged for it, once.
  func end(_ reply: ParkedReply) -> Payer? {
    state.withLock { state in
      state.unblock(ObjectIdentifier(reply))
      return state.waits.removeValue(forKey: ObjectIdentifier(reply))?.payer
    }
  }

  /// How many wait, and how many are noted to wait for somebody; for tests.
  var counts: (waiting: Int, blocked: Int) {
    state.withLock { ($0.waits.count, $0.blockers.values.reduce(0) { $0 + $1.count }) }
  }
}
