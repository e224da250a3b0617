// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

// All locks of a volume, whichever view they were taken through.
//
//  1. A request that must wait is parked in the queue of its object and holds no thread.
//  2. A waiter is granted or interrupted, and whoever claims its reply first decides which. A waiter that was
//     claimed elsewhere is dropped when it is next come across.
//  3. Replies are sent after all locks of ours are released.
//  4. Each object has a lock of its own. Only whoever waits takes one that all share (``LockWaits``), inside
//     that of the object.
//  5. A waiter is noted to wait for one holder. When the locks of an object change, those whose holder does
//     not stand against them any more are looked at again, in their order, and may then be told that they
//     would wait for ever.

/// See the rules above.
final class LockTable: Sendable {
  /// The two kinds of lock, which know nothing of each other.
  enum Style: Sendable { case posix, flock }

  /// Whoever has a lock has the object open, so its number is no other's meanwhile.
  let objects = LockedObjects()
  let waits = LockWaits()
  private let budget: Budget
  private let counted = Atomic<Int>(0)

  let kept: KeptLocks

  init(_ budget: Budget, kept: KeptLocks = KeptLocks(in: nil)) {
    self.budget = budget
    self.kept = kept
  }

  /// How many locks there are, and how many wait.
  var count: Int { counted.load(ordering: .relaxed) }

  /// The lock that stands against `wanted`.
  func conflict(_ object: ObjectNumber, with wanted: LockRange, by holder: LockHolder) -> LockRange? {
    let found = try? objects.with(object) { (locks) throws(Errno) in
      locks.posix.conflict(with: wanted, by: holder)
    }
    return (found ?? nil)?.range
  }

  /// Takes, changes or gives back a lock; EAGAIN if it is someone else's and there is no place to wait.
  func set(
    _ lock: HeldLock, on object: ObjectNumber, _ style: Style, parking: ParkingPlace?
  ) throws(Errno) -> LockOutcome {
    // A change of a whole-file lock gives the old one back first, as flock(2) says.
    if style == .flock { releaseAll(of: lock.holder, on: object, .flock) }
    if try take(lock, on: object, style) { return .done }
    guard let parking else { throw .EAGAIN }
    try refuseCircle(lock, on: object, style)
    try budget.take(.waiting, by: lock.payer)
    // Not under a lock: an interrupt that is there already is answered at once, and calls back.
    let reply = parking.park()
    waits.note(reply, of: lock, on: object)
    counted.wrappingAdd(1, ordering: .relaxed)
    finish(
      try? objects.with(object, made: true) { (locks) throws(Errno) in
        queue(ObjectLocks.Waiter(style: style, lock: lock, reply: reply), in: &locks, on: object)
      })
    return .parked
  }

  /// Puts a new waiter into the queue, unless it is done.
  ///
  /// What it waits for may have become free since the first look, and the interrupt may have come before. For
  /// all others nothing has changed.
  private func queue(
    _ waiter: ObjectLocks.Waiter, in locks: inout ObjectLocks, on object: ObjectNumber
  ) -> [Resolved] {
    var waiter = waiter
    guard let done = resolve(&waiter, &locks, on: object, lostBy: nil) else {
      locks.waiters.append(waiter)
      return []
    }
    return [done] + (done.givesBack ? resolveWaiters(of: &locks, on: object, lostBy: nil) : [])
  }

  /// Gives back what one holder has on an object.
  func releaseAll(of holder: LockHolder, on object: ObjectNumber, _ style: Style) {
    change(object) { locks in release(locks[style].all(of: holder), from: &locks[style]) }
  }

  /// Gives back what was taken through an open file that goes.
  func releaseAll(through handle: HandleID, view: UInt32, on object: ObjectNumber) {
    change(object) { locks in
      let posix = release(locks.posix.all(through: handle, of: view), from: &locks.posix)
      let flock = release(locks.flock.all(through: handle, of: view), from: &locks.flock)
      return posix || flock
    }
  }

  /// Gives back all that was taken through a view that has ended; nobody of it waits any more.
  func releaseAll(of view: UInt32) {
    for object in objects.numbers {
      change(object) { release(view, from: &$0) }
    }
  }

  /// Gives back what was taken through views that have not been taken over.
  func releaseAll(ofViews areGone: (UInt32) -> Bool) {
    var gone: Set<UInt32> = []
    for object in objects.numbers {
      _ = try? objects.with(object) { (locks) throws(Errno) in
        for lock in locks.posix.held + locks.flock.held where areGone(lock.holder.view) {
          gone.insert(lock.holder.view)
        }
      }
    }
    for view in gone { releaseAll(of: view) }
  }

  /// Gives back what a view has on an object that it has lost; EPERM to whoever of it waits there.
  func releaseAll(of view: UInt32, on object: ObjectNumber) {
    change(object, lostBy: view) { release(view, from: &$0) }
  }

  /// Gives back what a view has on one object; true, since whoever waits for it is to be looked at.
  private func release(_ view: UInt32, from locks: inout ObjectLocks) -> Bool {
    release(locks.posix.all(of: view), from: &locks.posix)
    release(locks.flock.all(of: view), from: &locks.flock)
    return true
  }

  /// Drops a waiter whose request has been interrupted.
  ///
  /// It stays in the queue for now: if each that goes had the queue gone through, thousands who are ended at
  /// once would keep everybody waiting for seconds.
  func abandon(_ reply: ParkedReply) {
    guard let object = waits.object(of: reply) else { return }
    waitsNoMore(reply)
    change(object) { locks in
      locks.abandoned += 1
      return locks.abandoned > 16 && locks.abandoned > locks.waiters.count / 2
    }
  }

  /// Gives back what one who waited had, once.
  private func waitsNoMore(_ reply: ParkedReply) {
    guard let payer = waits.end(reply) else { return }
    budget.give(.waiting, by: payer)
    counted.wrappingSubtract(1, ordering: .relaxed)
  }

  // MARK: Inside

  /// EDEADLK if whoever is going to wait would wait for ever.
  ///
  /// It is looked at again when the waiter is in the queue. Here it costs no place in that, and no budget.
  private func refuseCircle(
    _ lock: HeldLock, on object: ObjectNumber, _ style: Style
  ) throws(Errno) {
    guard style == .posix else { return }
    let isCircle = try objects.with(object) { (locks) throws(Errno) in
      locks.posix.blocker(of: lock.range, by: lock.holder).map {
        waits.wouldBeCircle(lock.holder, waitingFor: $0)
      }
    }
    if (isCircle ?? nil) == true { throw .EDEADLK }
  }

  /// Takes the lock if nothing stands against it.
  ///
  /// ENOLCK over budget.
  private func take(_ lock: HeldLock, on object: ObjectNumber, _ style: Style) throws(Errno) -> Bool {
    var isTaken = false
    var isWithinBudget = true
    change(object, made: lock.range.kind != .none) { locks in
      guard locks[style].conflict(with: lock.range, by: lock.holder) == nil else { return false }
      isTaken = true
      isWithinBudget = set(lock, in: &locks[style], on: object, style)
      return isWithinBudget
    }
    if !isWithinBudget {
      budget.refuse(.locks, lock.payer.user)
      throw .ENOLCK
    }
    // What is released where nothing is held is done.
    return isTaken || lock.range.kind == .none
  }

  /// False, and nothing is changed, if there would be more locks than the payer may have.
  private func set(
    _ lock: HeldLock, in list: inout LockList, on object: ObjectNumber, _ style: Style
  ) -> Bool {
    var change = list.change(to: lock)
    let growth = change.added.count - change.removed.count
    // Usually all are the payer's; what of them is another's changes hands.
    if growth > 0, !budget.takeQuietly(.locks, growth, by: lock.payer) { return false }
    if growth < 0 { budget.give(.locks, -growth, by: lock.payer) }
    for old in change.removed where old.payer != lock.payer {
      budget.give(.locks, by: old.payer)
      budget.charge(.locks, to: lock.payer)
    }
    for new in change.added where new.payer != lock.payer {
      budget.charge(.locks, to: new.payer)
      budget.give(.locks, by: lock.payer)
    }
    change.keep(in: kept, on: object, style)
    list.make(change)
    for old in change.removed { kept.remove(old.kept) }
    counted.wrappingAdd(growth, ordering: .relaxed)
    return true
  }

  @discardableResult
  private func release(_ gone: [HeldLock], from list: inout LockList) -> Bool {
    guard !gone.isEmpty else { return false }
    list.make(LockList.Change(removed: gone))
    for lock in gone {
      kept.remove(lock.kept)
      noteReleased(lock)
    }
    return true
  }

  func noteReleased(_ lock: HeldLock) {
    budget.give(.locks, by: lock.payer)
    counted.wrappingSubtract(1, ordering: .relaxed)
  }

  /// One that another worker has left.
  func noteRestored(_ lock: HeldLock) {
    budget.charge(.locks, to: lock.payer)
    counted.wrappingAdd(1, ordering: .relaxed)
  }

  /// Changes an object's locks; if `body` says that something has become free, whoever waited for it gets it.
  private func change(
    _ object: ObjectNumber, made: Bool = false, lostBy view: UInt32? = nil,
    _ body: (inout ObjectLocks) -> Bool
  ) {
    let resolved = try? objects.with(object, made: made) { (locks) throws(Errno) -> [Resolved] in
      body(&locks) && !locks.waiters.isEmpty ? resolveWaiters(of: &locks, on: object, lostBy: view) : []
    }
    finish(resolved)
  }

  /// Answers those who wait no more; not under a lock.
  private func finish(_ resolved: [Resolved]?) {
    for resolved in resolved ?? [] {
      waitsNoMore(resolved.waiter.reply)
      guard resolved.isClaimed else { continue }
      if resolved.error == .ENOLCK { budget.refuse(.locks, resolved.waiter.lock.payer.user) }
      resolved.waiter.reply.send(resolved.error)
    }
  }

  /// One who waits no more; whoever was interrupted has an answer.
  private struct Resolved {
    let waiter: ObjectLocks.Waiter
    let isClaimed: Bool
    var error: Errno?
    /// Whether they may have given back what others wait for.
    var givesBack = false
  }

  /// Gives waiters what has become free, first come first served.
  private func resolveWaiters(
    of locks: inout ObjectLocks, on object: ObjectNumber, lostBy view: UInt32?
  ) -> [Resolved] {
    locks.abandoned = 0
    var resolved: [Resolved] = []
    // A waiter that gets a lock for reading may give back one for writing, which concerns others before it.
    while let first = unblockWaiters(of: &locks, lostBy: view) {
      var givesBack = false
      var waiting = Array(locks.waiters[..<first])
      for var waiter in locks.waiters[first...] {
        if waiter.blocker == nil, let done = resolve(&waiter, &locks, on: object, lostBy: view) {
          givesBack = givesBack || done.givesBack
          resolved.append(done)
        } else {
          waiting.append(waiter)
        }
      }
      locks.waiters = waiting
      if !givesBack { break }
    }
    return resolved
  }

  /// Finds those who are to be looked at, and gives the place of the first: those who are new, who have an
  /// answer, or for whom the holder that they wait for stands in the way no more.
  ///
  /// All of them wait for nobody before one of them is looked at.
  private func unblockWaiters(of locks: inout ObjectLocks, lostBy view: UInt32?) -> Int? {
    var first: Int?
    for index in locks.waiters.indices {
      let waiter = locks.waiters[index]
      if waiter.blocker != nil {
        let isDone = waiter.reply.isClaimed || view == waiter.lock.holder.view
        if !isDone, locks.isStillBlocked(waiter) { continue }
        if waiter.style == .posix { waits.unblock(waiter.reply) }
        locks.waiters[index].blocker = nil
      }
      first = first ?? index
    }
    return first
  }

  /// Looks at one who waits for nobody yet; nil if they wait now.
  private func resolve(
    _ waiter: inout ObjectLocks.Waiter, _ locks: inout ObjectLocks, on object: ObjectNumber,
    lostBy view: UInt32?
  ) -> Resolved? {
    let isLost = view == waiter.lock.holder.view
    var isCircle = false
    if !waiter.reply.isClaimed, !isLost, let blocker = locks.blocker(of: waiter) {
      isCircle = waiter.style == .posix && !waits.block(waiter.reply, on: blocker)
      if !isCircle {
        waiter.blocker = blocker
        return nil
      }
    }
    guard waiter.reply.claim() else { return Resolved(waiter: waiter, isClaimed: false) }
    if isCircle { return Resolved(waiter: waiter, isClaimed: true, error: .EDEADLK) }
    if isLost {
      // Nothing of the file is in the view any more.
      let refusal = decideUse(.read, within: .nothing).errno
      return Resolved(waiter: waiter, isClaimed: true, error: refusal)
    }
    let isForReading = waiter.lock.range.kind == .read
    let hadLocks = isForReading && locks[waiter.style].has(waiter.lock.holder)
    let isSet = set(waiter.lock, in: &locks[waiter.style], on: object, waiter.style)
    return Resolved(
      waiter: waiter, isClaimed: true, error: isSet ? nil : .ENOLCK, givesBack: isSet && hadLocks)
  }
}
