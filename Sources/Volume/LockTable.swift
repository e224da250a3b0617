// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

// All locks of a volume, whichever view they were taken through.
//
//  1. A request that must wait is parked in the queue of its object and holds no thread.
//  2. A waiter is granted or interrupted, and whoever claims its reply first decides which. A waiter that was claimed
//     elsewhere is dropped when it is next come across.
//  3. Replies are sent after the lock of this table is given back.

/// See the rules above.
final class LockTable: Sendable {
  /// The two kinds of lock, which know nothing of each other.
  enum Style: Sendable { case posix, flock }

  private struct Waiter {
    let style: Style
    let lock: HeldLock
    let reply: ParkedReply
  }
  private struct ObjectLocks {
    var posix = LockList()
    var flock = LockList()
    var waiters: [Waiter] = []

    var isIdle: Bool { posix.isEmpty && flock.isEmpty && waiters.isEmpty }

    subscript(style: Style) -> LockList {
      get { style == .posix ? posix : flock }
      set { if style == .posix { posix = newValue } else { flock = newValue } }
    }
  }
  /// Whoever has a lock has the object open, so its number is no other's meanwhile.
  private typealias Objects = [ObjectNumber: ObjectLocks]
  private let state = Mutex<Objects>([:])

  /// How many locks there are, and how many wait.
  var count: Int {
    state.withLock { objects in
      objects.values.reduce(0) { $0 + $1.posix.held.count + $1.flock.held.count + $1.waiters.count }
    }
  }

  /// The lock that stands against `wanted`.
  func conflict(_ object: ObjectNumber, with wanted: LockRange, by holder: LockHolder) -> LockRange? {
    state.withLock { $0[object]?.posix.conflict(with: wanted, by: holder)?.range }
  }

  /// Takes, changes or gives back a lock; EAGAIN if it is someone else's and there is no place to wait.
  func set(
    _ lock: HeldLock, on object: ObjectNumber, _ style: Style, parking: ParkingPlace?
  ) throws(Errno) -> LockOutcome {
    // A change of a whole-file lock gives the old one back first, as flock(2) says.
    if style == .flock { releaseAll(of: lock.holder, on: object, .flock) }
    if try take(lock, on: object, style, willWait: parking != nil) { return .done }
    guard let parking else { throw .EAGAIN }
    // Not under the lock: an interrupt that is there already is answered on the spot, and calls back.
    wait(Waiter(style: style, lock: lock, reply: parking.park()), for: object)
    return .parked
  }

  /// Gives back what one holder has on an object.
  func releaseAll(of holder: LockHolder, on object: ObjectNumber, _ style: Style) {
    release(object) { $0[style].removeAll { $0.holder == holder } }
  }

  /// Gives back what was taken through an open file that goes.
  func releaseAll(through handle: HandleID, view: UInt32, on object: ObjectNumber) {
    release(object) { locks in
      locks.posix.removeAll { $0.handle == handle && $0.holder.view == view }
      locks.flock.removeAll { $0.handle == handle && $0.holder.view == view }
    }
  }

  /// Gives back all that was taken through a view that has ended; nobody of it waits any more.
  func releaseAll(of view: UInt32) {
    let answered = state.withLock { objects -> [ParkedReply] in
      var answered: [ParkedReply] = []
      for object in Array(objects.keys) {
        objects[object]?.posix.removeAll { $0.holder.view == view }
        objects[object]?.flock.removeAll { $0.holder.view == view }
        objects[object]?.waiters.removeAll { $0.lock.holder.view == view }
        answered += Self.grantWaiters(of: object, &objects)
      }
      return answered
    }
    for reply in answered { reply.send(nil) }
  }

  /// Drops a waiter whose request has been interrupted.
  func abandon(_ reply: ParkedReply) {
    state.withLock { objects in
      for object in Array(objects.keys) {
        objects[object]?.waiters.removeAll { $0.reply.id == reply.id && $0.reply === reply }
        if objects[object]?.isIdle == true { objects[object] = nil }
      }
    }
  }

  // MARK: Inside

  /// Takes the lock if nothing stands against it.
  ///
  /// EDEADLK if waiting for it would never end.
  private func take(
    _ lock: HeldLock, on object: ObjectNumber, _ style: Style, willWait: Bool
  ) throws(Errno) -> Bool {
    let answered = try state.withLock { (objects) throws(Errno) -> [ParkedReply]? in
      var locks = objects[object] ?? ObjectLocks()
      if let conflict = locks[style].conflict(with: lock.range, by: lock.holder) {
        if willWait, style == .posix, Self.wouldDeadlock(lock.holder, waitingFor: conflict.holder, objects) {
          throw .EDEADLK
        }
        return nil
      }
      locks[style].set(lock.range, for: lock.holder, through: lock.handle)
      objects[object] = locks
      return Self.grantWaiters(of: object, &objects)
    }
    guard let answered else { return false }
    for reply in answered { reply.send(nil) }
    return true
  }

  private func wait(_ waiter: Waiter, for object: ObjectNumber) {
    let answered = state.withLock { objects -> [ParkedReply] in
      objects[object, default: ObjectLocks()].waiters.append(waiter)
      // It may have become free since the first look, and the interrupt may have come before the waiter was in the queue.
      return Self.grantWaiters(of: object, &objects)
    }
    for reply in answered { reply.send(nil) }
  }

  private func release(_ object: ObjectNumber, _ change: (inout ObjectLocks) -> Void) {
    let answered = state.withLock { objects -> [ParkedReply] in
      guard var locks = objects[object] else { return [] }
      change(&locks)
      objects[object] = locks
      return Self.grantWaiters(of: object, &objects)
    }
    for reply in answered { reply.send(nil) }
  }

  /// Gives waiters what has become free, first come first served; their replies are to be sent by the caller.
  private static func grantWaiters(of object: ObjectNumber, _ objects: inout Objects) -> [ParkedReply] {
    guard var locks = objects[object] else { return [] }
    var granted: [ParkedReply] = []
    var waiting: [Waiter] = []
    for waiter in locks.waiters {
      if waiter.reply.isClaimed { continue }
      if locks[waiter.style].conflict(with: waiter.lock.range, by: waiter.lock.holder) != nil {
        waiting.append(waiter)
      } else if waiter.reply.claim() {
        locks[waiter.style].set(waiter.lock.range, for: waiter.lock.holder, through: waiter.lock.handle)
        granted.append(waiter.reply)
      }
    }
    locks.waiters = waiting
    objects[object] = locks.isIdle ? nil : locks
    return granted
  }

  /// Whether `other` waits, over however many others, for something that `holder` has.
  ///
  /// The kernel looks as far as ten steps; so do we.
  private static func wouldDeadlock(
    _ holder: LockHolder, waitingFor other: LockHolder, _ objects: Objects
  ) -> Bool {
    var current = other
    for _ in 0..<10 {
      guard let next = blocker(of: current, objects) else { return false }
      if next == holder { return true }
      current = next
    }
    return false
  }

  private static func blocker(of holder: LockHolder, _ objects: Objects) -> LockHolder? {
    for locks in objects.values {
      for waiter in locks.waiters
      where waiter.style == .posix && waiter.lock.holder == holder && !waiter.reply.isClaimed {
        return locks.posix.conflict(with: waiter.lock.range, by: holder)?.holder
      }
    }
    return nil
  }
}
