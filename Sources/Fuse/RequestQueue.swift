// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Synchronization

// Requests that may wait for a server, or for a program that somebody else runs.
//
//  1. They wait without any of the threads that serve others: a queue has threads of its own, which are
//     started when they are needed and end when there has been nothing to do for a while. Users take turns.
//  2. Whoever is being killed does not wait: a request that has taken long is answered with EINTR as soon as
//     its caller has got a fatal signal. What its thread then gets from the server, nobody learns.
//  3. While it looks a name up or renames, the kernel holds locks that others need. So these are answered
//     within two seconds (EIO), and at once while the volume owes an answer that was given up so. What was
//     answered so, or because its caller is killed, and is done later all the same, is told to its kernel
//     then. Of a user whose requests wait (`StalledUsers`) nothing is given up: whoever has a file of theirs
//     locked would take the whole tree from them.
//  4. The kernel sends only so many releases, reads ahead and late writes at once, of all files together. So
//     a release is answered before it is done; of reads that wait a user has only so many, of all volumes
//     together, and far fewer where a server does not answer. What the kernel writes late is never refused,
//     it would be lost: there the kernel itself has a bound, a part of the memory.
//  5. What waits takes memory, of which each user has a share.
//  6. Who serves a volume may judge those who ask by their ids. Some servers are asked as the caller, so that
//     their own refusal stands. Of all others root asks, but for what is made, which is the caller's: the
//     tree alone decides who may.
//  7. What is in a request or in its answer may be plaintext of a volume that is locked later, so nothing of
//     it stays in memory: the buffer in which it came is wiped as soon as it is in the queue, and the copy
//     afterwards. The same holds for what the kernel writes late, when the volume has gone and no queue
//     serves it, and for short answers, which are put together before they are sent.
//  8. A queue may hold back all that comes, as for a volume that is locked: then no thread serves it, and
//     what is held back waits until it is refused, or its caller is killed.

/// See the rules above.
package final class RequestQueue: Sendable {
  private typealias Key = PendingRequests.Key
  private typealias Pending = PendingRequests.Pending
  /// What becomes of requests that no thread serves.
  package enum Hold: Sendable {
    case waiting
    case refused(Errno)
  }
  private struct State {
    var turns: Turns<Work>
    var pending = PendingRequests()
    var threads = 0
    var idle = 0
    var isWatched = false
    var isStopped = false
    var hold: Hold?
    /// Whether a read has waited for long, as the watch has seen.
    var hasOldRead = false
  }
  private struct Work: Sendable {
    let run: @Sendable () -> Void
  }
  /// On which its threads wait for work, and nobody else: each new piece wakes one of them.
  private let state: Condition<State>
  /// Between two looks at those who are being killed.
  private let pause = Condition(())
  private let budget: Budget
  private let asCallers: Bool
  private let isOfStalledUser: Bool

  private let threadLimit: Int
  private static let idleMilliseconds = 10_000
  /// How many reads may wait once one of them has waited for so long.
  private static let mostReads = 64
  private static let readNanoseconds: UInt64 = 5_000_000_000
  private static let watchMilliseconds = 250
  private static let lockNanoseconds: UInt64 = 2_000_000_000

  /// `asCallers` says that requests are made with the ids of their callers.
  package init(budget: Budget, isForOne: Bool, asCallers: Bool = false, isOfStalledUser: Bool = false) {
    self.budget = budget
    self.isOfStalledUser = isOfStalledUser
    self.asCallers = asCallers
    // Each request of such a user's may wait for a file of its own.
    threadLimit = isOfStalledUser ? 64 : 8
    let share = isForOne ? threadLimit : threadLimit / 2
    state = Condition(State(turns: Turns(share: share)))
  }

  /// Its threads end when they are done.
  package func stop() { state.change { $0.isStopped = true } }

  /// Serves nobody from now on: what comes waits, or is refused, as is then what has waited.
  package func hold(_ hold: Hold) {
    let held = state.withLock { state -> [Pending] in
      state.hold = hold
      guard case .refused = hold else { return [] }
      return state.pending.removeAll { $0.held != nil }
    }
    guard case .refused(let error) = hold else { return }
    for request in held {
      if !request.isAnswered { request.session.answer(request.number, error) }
      request.ended?()
    }
  }

  /// Keeps a request, or gives why it is refused.
  private func holdBack(_ pending: Pending, _ key: Key) -> Errno? {
    state.withLock { state in
      if case .refused(let error)? = state.hold { return error }
      state.pending.add(pending, key)
      startWatch(&state)
      return nil
    }
  }

  private var isHolding: Bool { state.withLock { $0.hold != nil } }

  /// How many requests wait for it or are under way.
  package var count: Int { state.withLock { $0.pending.count } }

  /// Serves a request on a thread of its own; `ended` is called when that is done.
  ///
  /// The message is wiped.
  func add(
    _ message: UnsafeMutableRawBufferPointer, of session: Session, _ payer: Payer, connection: UInt64,
    ended: @escaping @Sendable () -> Void
  ) {
    let bytes = UnsafeRawBufferPointer(message)
    guard let header = Wire.Header(bytes) else { return ended() }
    defer { message.wipe() }
    let isHeld = isHolding
    let isRead = header.opcode == Wire.Opcode.read
    // What is held back is about one directory, whose locks nobody else needs.
    let holdsLocks = !isHeld && !isOfStalledUser && Wire.Opcode.holdsLocks(header.opcode)
    let waiting: WaitingRequest
    do throws(Errno) {
      if isRead && hasTooManyReads(payer) || holdsLocks && owesAnswers { throw .EIO }
      waiting = try WaitingRequest(
        message, of: payer, isKernelsOwn: header.caller.uid == 0 && header.caller.pid == 0, isWiped: true,
        isRead: isRead, in: budget)
    } catch {
      session.refuse(bytes, error)
      return ended()
    }
    var pending = Pending(
      caller: header.caller.pid, since: monotonicNanoseconds(), isRead: isRead, holdsLocks: holdsLocks,
      session: session, number: header.unique, ended: ended)
    let key = Key(session, header.unique)
    if isHeld {
      pending.held = waiting
      guard let error = holdBack(pending, key) else { return }
      session.refuse(bytes, error)
      return ended()
    }
    if Wire.Opcode.isRelease(header.opcode) { session.answerDone(header.unique) }
    let work = Work { [self] in
      if !isAnswered(key) { serve(waiting, of: session, for: header.caller) }
      let request = forget(key)
      if request?.isAnswered == true { session.fileSystem.answeredEarly() }
      request?.ended?()
    }
    state.withLock { [pending] state in
      state.pending.add(pending, key)
      state.turns.add(work, payer.user, connection)
      startThreads(&state)
    }
    state.wakeOne()
  }

  private func serve(_ waiting: WaitingRequest, of session: Session, for caller: Caller) {
    guard asCallers else { return session.process(waiting.message) }
    try? ThreadIdentity.with(uid: caller.uid, gid: caller.gid, lasting: false) { () throws(Errno) in
      session.process(waiting.message)
    }
  }

  private func isAnswered(_ key: Key) -> Bool { state.withLock { $0.pending.isAnswered(key) } }

  private func forget(_ key: Key) -> Pending? { state.withLock { $0.pending.remove(key) } }

  /// What is to be done for a request that is still under way.
  private func takeEnd(of key: Key) -> (@Sendable () -> Void)? {
    state.withLock { $0.pending.takeEnd(of: key) }
  }

  /// Whether something is still under way that was given up for the sake of others.
  private var owesAnswers: Bool { state.withLock { $0.pending.owed > 0 } }

  /// Whether reads wait for long, and too many, here or of this user in all queues.
  private func hasTooManyReads(_ payer: Payer) -> Bool {
    let (isSlow, reads) = state.withLock { ($0.hasOldRead, $0.pending.reads) }
    guard isSlow else { return false }
    return reads >= Self.mostReads || budget.count(.reads, of: Payer(user: payer.user)) >= Self.mostReads
  }

  // MARK: Threads

  private func startThreads(_ state: inout State) {
    if state.idle < state.turns.waiting, state.threads < threadLimit,
      let thread = try? JoinableThread(name: "insula-volume", { self.run() })
    {
      state.threads += 1
      thread.detach()
    }
    startWatch(&state)
  }

  private func startWatch(_ state: inout State) {
    if !state.isWatched, let thread = try? JoinableThread(name: "insula-waits", { self.watch() }) {
      state.isWatched = true
      thread.detach()
    }
  }

  private func run() {
    // The next request may be somebody else's.
    try? ThreadIdentity.prepare(lasting: false)
    if isOfStalledUser { SlowWork.giveWay() }
    while let (work, user) = next() {
      work.run()
      // Mostly this thread takes what comes next.
      let mayOthers = state.withLock { state in
        state.turns.done(user)
        return state.idle > 0 && state.turns.hasNext
      }
      if mayOthers { state.wakeOne() }
    }
  }

  /// The next piece of work; nil when there has been none for a while.
  private func next() -> (Work, UInt32)? {
    state.withLock { $0.idle += 1 }
    while true {
      let isThere = state.wait(milliseconds: Self.idleMilliseconds) { $0.isStopped || $0.turns.hasNext }
      let (next, isOver) = state.withLock { state -> ((work: Work, user: UInt32)?, Bool) in
        let next = state.turns.next()
        let isOver = next == nil && (!isThere || state.isStopped)
        if next != nil || isOver { state.idle -= 1 }
        if isOver { state.threads -= 1 }
        return (next, isOver)
      }
      if let next { return (next.work, next.user) }
      if isOver { return nil }
    }
  }

  // MARK: Those who are being killed

  private func watch() {
    while true {
      _ = pause.wait(milliseconds: Self.watchMilliseconds) { false }
      let isOver = state.withLock { $0.isStopped && $0.pending.isEmpty }
      let now = monotonicNanoseconds()
      let late = state.withLock { state in
        state.hasOldRead = state.pending.hasRead(from: now &- Self.readNanoseconds)
        return state.pending.added(before: now &- 500_000_000)
      }
      // One caller may wait for many.
      var killed: [Int32: Bool] = [:]
      func isBeingKilled(_ caller: Int32) -> Bool {
        if let known = killed[caller] { return known }
        let isKilled = ProcessID.isBeingKilled(caller)
        killed[caller] = isKilled
        return isKilled
      }
      for (key, request) in late {
        // The connection is over when nothing of it is under way.
        if request.session.hasEnded { takeEnd(of: key)?() }
        guard !request.isAnswered else { continue }
        let isTooLong = request.holdsLocks && now &- request.since > Self.lockNanoseconds
        guard isTooLong || isBeingKilled(request.caller) else { continue }
        guard state.withLock({ $0.pending.answer(key) }) else { continue }
        request.session.answer(request.number, isTooLong ? .EIO : .EINTR)
        if request.held != nil { forget(key)?.ended?() }
      }
      let mayEnd = state.withLock { state in
        let mayEnd = isOver || state.pending.isEmpty && state.threads == 0
        if mayEnd { (state.isWatched, state.hasOldRead) = (false, false) }
        return mayEnd
      }
      if mayEnd { return }
    }
  }
}
