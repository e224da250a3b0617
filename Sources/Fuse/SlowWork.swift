// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Synchronization

// Slow work must not occupy all workers.
//
//  1. Such work is done at once if its user has none under way (of reads and writes: little; and what keeps a
//     CPU busy, only if none of theirs waits): that is what a client alone always finds, and handing work
//     over costs a wake-up. However many users there are, two who serve are left for the rest.
//  2. All else waits without a thread, and is done by threads of its own. Users take turns, and one user has
//     at most half of the threads, and of what keeps a CPU busy half of the CPUs (``SlowTurns``).
//     The kernel holds the lock of a file or of a directory for some of it, for which anybody may have to
//     wait. Of that only some waits, and more is refused (`Wire.Patience`); and names wait for names alone.
//  3. These threads are started when they are first needed. They give way to those who serve what is quick,
//     which on a busy CPU would wait for several of them otherwise, for milliseconds each time.
//  4. A thread that waits for what its user holds does not count any more after a while (`StalledUsers`).
//  5. What waits takes memory, up to a megabyte each where data comes along: of that each user has a share,
//     and whoever has used it up is refused.

/// See the rules above.
package final class SlowWork: Sendable {
  private struct Work: Sendable {
    let user: UInt32
    let run: @Sendable () -> Void
    let ended: @Sendable () -> Void
  }
  /// A thread, and what it is at.
  private struct Running {
    let thread = ServingThread()
    var watch = StallWatch()
    var turn: SlowTurns<Work>.Turn?
  }
  /// Names and directories of a user wait for nothing else of theirs.
  private struct Spot: Hashable {
    let user: UInt32
    let kind: SlowKind

    init(_ user: UInt32, _ kind: SlowKind) {
      self.user = user
      self.kind = kind == .names || kind == .directories ? kind : .disk
    }
  }
  private struct State {
    var turns: SlowTurns<Work>
    /// How much each user has under way at once.
    var onTheSpot: [Spot: Int] = [:]
    var spots = 0
    /// How many threads wait, and have not been called.
    var idle = 0
    var threads: [Int: Running] = [:]
    var lastThread = 0
    var isStopped = false
    /// Whether nothing begins yet that waits for its turn.
    var isHeld = false
  }
  private let state: Condition<State>
  private let calls = Calls()
  /// How much may be under way at once altogether, and how many reads and writes of one user.
  private let spotLimit: Int
  private let dataShare: Int
  private let spots = Atomic<Int>(0)
  static let niceness: Int32 = 5
  let requests = RequestCounts()
  let budget: Budget
  /// For how long each user has kept others waiting after another worker's end (`Session.resume`).
  let resentTime = Mutex<[UInt32: UInt64]>([:])

  /// `servers` is how many threads serve what is not slow.
  package init(
    servers: Int, cpus: Int = sysconf(Int32(_SC_NPROCESSORS_ONLN)),
    budget: Budget = Budget(Budget.Limits(descriptors: 0))
  ) {
    self.budget = budget
    spotLimit = max(servers - 2, 1)
    dataShare = max(servers / 2, 1)
    state = Condition(State(turns: SlowTurns(threads: max(servers - 2, 2), cpus: cpus)))
  }

  /// How much is under way at once.
  var underWay: Int { spots.load(ordering: .relaxed) }

  /// Takes a place for work that is done at once; false if it has to wait for its turn.
  package func begin(_ user: UInt32, _ kind: SlowKind = .disk, isData: Bool = false) -> Bool {
    state.withLock { state in
      let own = state.onTheSpot[Spot(user, kind)] ?? 0
      guard own < (isData ? dataShare : 1), state.spots < spotLimit else { return false }
      if kind == .long, state.turns.has(user) { return false }
      if kind == .names, state.turns.has(user, kind) { return false }
      state.onTheSpot[Spot(user, kind)] = own + 1
      state.spots += 1
      spots.store(state.spots, ordering: .relaxed)
      return true
    }
  }

  /// Gives the place back.
  package func end(_ user: UInt32, _ kind: SlowKind = .disk) {
    state.withLock { state in
      let own = (state.onTheSpot[Spot(user, kind)] ?? 1) - 1
      state.onTheSpot[Spot(user, kind)] = own > 0 ? own : nil
      state.spots -= 1
      spots.store(state.spots, ordering: .relaxed)
    }
  }

  /// Has work done when it is its user's turn, and among theirs this connection's.
  ///
  /// `ended` is called when it is done, or nobody waits for that. False, and nothing comes of it, if `limit`
  /// pieces of that kind wait for that user.
  @discardableResult
  package func add(
    _ user: UInt32, _ connection: UInt64, _ kind: SlowKind = .disk, limit: Int? = nil,
    ended: @escaping @Sendable () -> Void = {}, _ work: @escaping @Sendable () -> Void
  ) -> Bool {
    let work = Work(user: user, run: work, ended: ended)
    let (isAdded, isIdle) = state.withLock { state -> (Bool, Bool) in
      guard state.turns.add(work, user, connection, kind, limit: limit) else { return (false, false) }
      if state.idle > 0 {
        state.idle -= 1
        return (true, true)
      }
      if state.isStopped { return (true, true) }
      if !state.isHeld, state.turns.hasNext(kind) { startThread(&state) }
      return (true, false)
    }
    if isIdle { calls.ring(1) }
    return isAdded
  }

  private func startThread(_ state: inout State) {
    guard state.threads.count < state.turns.limit else { return }
    state.lastThread += 1
    let (number, running) = (state.lastThread, Running())
    if let thread = try? JoinableThread(name: "insula-slow", { self.run(number, running.thread) }) {
      state.threads[number] = running
      thread.detach()
    }
  }

  /// Has nothing begin that waits for its turn, until ``goOn()``.
  func hold() { state.withLock { $0.isHeld = true } }

  func goOn() {
    let idle = state.withLock { state in
      state.isHeld = false
      for kind in SlowKind.allCases where state.turns.hasNext(kind) { startThread(&state) }
      defer { state.idle = 0 }
      return state.idle
    }
    calls.ring(idle)
  }

  /// Ends the threads; what they are at is finished first, what waits is not begun.
  func stop() {
    let count = state.withLock { state in
      state.isStopped = true
      return state.threads.count
    }
    calls.ring(count)
    while !state.wait(milliseconds: 100, until: { $0.threads.isEmpty }) { giveUpStalled { _ in {} } }
  }

  /// Lets others of these threads begin beside those that wait for what somebody holds; `lose` gives for the
  /// user of each what is called when it comes back.
  func giveUpStalled(_ lose: (_ user: UInt32) -> @Sendable () -> Void) {
    let now = monotonicNanoseconds()
    let stalled = state.change { state in
      var stalled: [Work] = []
      for (number, running) in state.threads {
        guard let turn = running.turn else { continue }
        let time = state.threads[number]?.watch.look(at: running.thread, now).time
        guard let time, time >= StalledUsers.slowNanoseconds else { continue }
        running.thread.lose(lose(turn.work.user))
        state.threads[number] = nil
        state.turns.done(turn)
        stalled.append(turn.work)
        startThread(&state)
      }
      return stalled
    }
    for work in stalled { work.ended() }
  }

  /// Has the calling thread serve when others have nothing to do.
  ///
  /// Of this thread alone, as Linux has it. Not by more: what it does may hold what a filesystem's others
  /// need.
  static func giveWay() { _ = setpriority(Int32(PRIO_PROCESS.rawValue), 0, niceness) }

  private func run(_ number: Int, _ thread: ServingThread) {
    try? ThreadIdentity.prepare()
    Self.giveWay()
    thread.run()
    defer { thread.finish() }
    while true {
      let (turn, isOver) = state.withLock { state -> (SlowTurns<Work>.Turn?, Bool) in
        if state.isStopped || thread.isLost { return (nil, true) }
        let turn = state.isHeld ? nil : state.turns.next()
        if let turn, state.idle == 0, state.turns.hasNext(turn.kind) { startThread(&state) }
        if turn == nil { state.idle += 1 }
        state.threads[number]?.turn = turn
        return (turn, false)
      }
      if isOver { return state.change { $0.threads[number] = nil } }
      guard let turn else {
        calls.wait()
        continue
      }
      thread.begin(turn.work.user, isSlow: true)
      turn.work.run()
      thread.end()
      let isOwn = state.withLock { state in
        guard !thread.isLost else { return false }
        state.threads[number]?.turn = nil
        state.turns.done(turn)
        return true
      }
      if isOwn { turn.work.ended() }
    }
  }
}

/// A copy of a request that waits for its turn, for which its user is charged as long as it is there.
final class WaitingRequest: Sendable {
  nonisolated(unsafe) let message: UnsafeMutableRawBufferPointer
  private let payer: Payer
  private let budget: Budget
  private let isWiped: Bool
  private let isRead: Bool

  /// What is kept of a request besides what it says.
  private static let overhead = 1 << 10

  /// EBUSY if the payer has too much waiting.
  ///
  /// What the kernel itself sends, to write back what it has of files, is never refused: it would be lost.
  /// There is a bound on how much of that it sends at once. `isWiped` has nothing of the copy stay in memory;
  /// `isRead` counts it among the user's reads that wait.
  init(
    _ message: UnsafeMutableRawBufferPointer, of payer: Payer, isKernelsOwn: Bool, isWiped: Bool = false,
    isRead: Bool = false, in budget: Budget
  ) throws(Errno) {
    let size = message.count + Self.overhead
    if isKernelsOwn {
      budget.charge(.memory, size, to: payer)
      if isRead { budget.charge(.reads, to: payer) }
    } else {
      try budget.take(.memory, size, by: payer)
      do throws(Errno) {
        if isRead { try budget.take(.reads, by: payer) }
      } catch {
        budget.give(.memory, size, by: payer)
        throw error
      }
    }
    self.isRead = isRead
    self.payer = payer
    self.budget = budget
    self.isWiped = isWiped
    self.message = .allocate(byteCount: message.count, alignment: 16)
    if isWiped {
      self.message.copyTracelessly(from: UnsafeRawBufferPointer(message))
    } else {
      self.message.copyMemory(from: UnsafeRawBufferPointer(message))
    }
  }

  deinit {
    budget.give(.memory, message.count + Self.overhead, by: payer)
    if isRead { budget.give(.reads, by: payer) }
    if isWiped { message.wipe() }
    message.deallocate()
  }
}

/// Wakes as many threads as it was rung.
///
/// It is safe to send: it is made before and unmade after anybody can use it.
private final class Calls: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func ring(_ count: Int) { for _ in 0..<count { sem_post(semaphore) } }

  func wait() { while sem_wait(semaphore) < 0, Errno.last == .EINTR {} }
}
