// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
internal import Synchronization

// How requests find a thread.
//
//  1. Every session's descriptor is in one epoll set, one-shot: the worker that is woken owns the session,
//     and no other worker is woken for it until it is armed again.
//  2. The owner serves request after request. When there is none it polls for a few tens of microseconds (a
//     client that works in a loop asks again by then, and waking an idle CPU costs more than the request
//     itself), then arms the session and sleeps.
//  3. When the owner finds again and again that another client's request has come while it served the last,
//     the session is crowded: workers, one a CPU, sit down in it, each with an epoll set of its own
//     (``SessionPoller``), and share what comes without polling, which would steal from clients that keep
//     every CPU busy. When all comes from one client again, they go.
//  4. A worker that has served a few requests of one session looks whether another session waits, and goes
//     there if so; a session that it leaves is armed and comes after those that wait already. So whoever
//     keeps a session busy, or many, keeps no other waiting for longer than a turn.
//  5. Before a request that is slow by its nature (an fsync, a rename that takes many grants along), and for
//     one that turns out to be (the monitor sees that), the session is armed and, if all who usually serve
//     may be waiting, someone of the reserve is called: no request waits long behind another. The monitor
//     sleeps whenever the pool does.
//  6. Of what is slow by its nature nobody has more than a share of the workers: the rest waits for its turn
//     (``SlowWork``).

/// How many threads serve, and how they wait.
package struct PoolSettings: Sendable {
  /// How many serve usually: as many as there are CPUs, since more only take each other's place.
  package var threads = min(max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN))), 8)
  /// How many stand by, for when those wait for slow disks.
  package var reserve = 6
  /// For how long a worker looks for the next request before it sleeps; 0 makes it sleep at once.
  package var pollNanoseconds: UInt64 = 30_000
  /// Called when a user's requests wait in the kernel for what somebody holds there.
  package var stalled: @Sendable (_ user: UInt32) -> Void = { _ in }

  /// All of them.
  package var servers: Int { max(1, threads) + max(0, reserve) }

  package init() {}
}

/// A few threads that serve any number of sessions.
package final class WorkerPool: Sendable {
  let settings: PoolSettings
  private let epoll: OwnedFD
  private let stopping: OwnedFD
  /// In nanoseconds: few requests take as long, and the kernel accepts 100 microseconds and more.
  private static let timeSlice: UInt64 = 200_000
  private let sessions = Sessions()
  /// Whatever takes long, also what is not a request.
  package let slow: SlowWork
  /// Whose requests are counted apart.
  package let traces = RequestTraces()
  private struct State {
    var workers: [Worker] = []
    /// Those that run and were not given up.
    var running: Set<ObjectIdentifier> = []
    var monitor: JoinableThread?
  }
  private let state = Condition(State())
  private let stalled: StalledUsers
  private let monitor: Monitor
  private let reserve: Reserve

  /// Makes the pool; it serves from ``start()`` on.
  package init(_ settings: PoolSettings, slow: SlowWork? = nil) throws(Errno) {
    self.settings = settings
    let slow = slow ?? SlowWork(servers: settings.servers)
    self.slow = slow
    stalled = StalledUsers(slow.budget, tell: settings.stalled)
    epoll = OwnedFD(owning: try check(epoll_create1(O_CLOEXEC)))
    stopping = OwnedFD(owning: try check(eventfd(0, Int32(EFD_CLOEXEC))))
    monitor = try Monitor()
    reserve = try Reserve()
    var workers: [Worker] = []
    let regulars = max(1, settings.threads)
    for number in 0..<regulars + max(0, settings.reserve) {
      workers.append(
        try Worker(stopping: stopping.fd, pool: epoll.fd, isReserve: number >= regulars, traces: traces))
    }
    state.withLock { [workers] in $0.workers = workers }
    // Level-triggered and never read: once written, it wakes every worker that comes to wait.
    var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: 0))
    try check(epoll_ctl(epoll.fd.raw, EPOLL_CTL_ADD, stopping.fd.raw, &event))
  }

  /// Starts the threads.
  package func start() throws(Errno) {
    slow.goOn()
    let workers = workers
    for worker in workers { try start(worker) }
    guard workers.count > 1 else { return }
    let thread = try JoinableThread(name: "insula-monitor") {
      self.monitor.run(
        watching: { self.workers }, self.slow, self.stalled, calling: self.reserve, giveUp: self.giveUp)
    }
    state.withLock { $0.monitor = thread }
  }

  private func start(_ worker: Worker) throws(Errno) {
    try state.withLock { (state) throws(Errno) in
      let thread = try JoinableThread(name: worker.isReserve ? "insula-reserve" : "insula-worker") {
        self.run(worker)
        self.state.change { _ = $0.running.remove(ObjectIdentifier(worker)) }
      }
      thread.detach()
      state.running.insert(ObjectIdentifier(worker))
    }
  }

  /// Has another worker do what one was for that does not get on; that one ends when it comes back.
  private func giveUp(_ index: Int, _ worker: Worker, _ number: UInt64) {
    guard
      let next = try? Worker(
        stopping: stopping.fd, pool: epoll.fd, isReserve: worker.isReserve, traces: traces, worker.requests),
      (try? start(next)) != nil
    else { return }
    let files = worker.current.withLock { $0?.served.session.fileSystem }
    let user = files.map { $0.payer(of: worker.thread.served.user).user }
    let cameBack: @Sendable () -> Void = if let user { stalled.lose(user) } else { {} }
    let current = worker.giveUp(at: number, cameBack: cameBack)
    state.change { state in
      state.workers[index] = next
      state.running.remove(ObjectIdentifier(worker))
    }
    guard let current else { return }
    if let place = current.place { slow.end(place.user, place.kind) }
    sessions.leave(current.served)
  }

  /// How many requests have been served.
  package var requests: UInt64 { RequestCounts.total(counts) }
  /// The same by kind, under the kernel's names.
  package var requestsByKind: [String: UInt64] { RequestCounts.byName(counts) }
  private var workers: [Worker] { state.withLock { $0.workers } }
  private var counts: [RequestCounts] { workers.map(\.requests) + [slow.requests] }

  /// Whether workers sit in any session.
  var isCrowded: Bool { sessions.isCrowded }

  /// How many threads there are.
  package var threadCount: Int { state.withLock { $0.running.count + ($0.monitor == nil ? 0 : 1) } }

  /// Ends the threads; what is being served is finished first, but for what waits for what somebody holds.
  ///
  /// Sessions that are still up are left unserved.
  package func stop() {
    var one: UInt64 = 1
    _ = write(stopping.fd.raw, &one, 8)
    reserve.stop(workers.count)
    // The monitor sees who does not get on.
    monitor.wake()
    state.wait { $0.running.isEmpty }
    slow.stop()
    monitor.stop()
    let thread = state.withLock { state in
      defer { state.monitor = nil }
      return state.monitor
    }
    thread?.join()
  }

  /// Serves `session` from now on, until its connection ends; `ended` is then called once, when nothing of it
  /// is in work.
  ///
  /// `counter` counts the requests of this session alone.
  package func add(
    _ session: Session, counter: RequestCounter? = nil, ended: @escaping @Sendable () -> Void
  ) throws(Errno) {
    let flags = try check(fcntl(session.fd.raw, F_GETFL))
    try check(fcntl(session.fd.raw, F_SETFL, flags | O_NONBLOCK))
    let served = sessions.add {
      ServedSession(session, key: $0, epoll: epoll.fd, counter: counter, ended: ended)
    }
    session.postponed.begin { [weak served, slow, sessions] user, work in
      guard let served, served.enterAgain() else { return false }
      slow.add(user, served.key, .names) {
        work()
        sessions.leave(served)
      }
      return true
    }
    var event = served.event
    try check(epoll_ctl(epoll.fd.raw, EPOLL_CTL_ADD, session.fd.raw, &event))
  }

  private func run(_ worker: Worker) {
    try? ThreadIdentity.prepare()
    worker.thread.run()
    defer { worker.thread.finish() }
    // On a busy machine a worker would wait for a slice of every other thread, which takes milliseconds, for
    // a request that takes microseconds.
    JoinableThread.shortenTimeSlice(nanoseconds: Self.timeSlice)
    guard worker.isReserve else { return serveSessions(worker, patienceMilliseconds: -1) }
    while !worker.thread.isLost, reserve.wait() {
      // One who was called goes back when there has been nothing to do for a while, but not before those who
      // usually serve.
      repeat {
        serveSessions(worker, patienceMilliseconds: 50)
      } while slow.underWay >= settings.threads && !reserve.isStopped && !worker.thread.isLost
    }
  }

  private func serveSessions(_ worker: Worker, patienceMilliseconds: Int32) {
    while !worker.thread.isLost, let served = next(patienceMilliseconds) {
      let isIn = worker.serve(
        served, pollNanoseconds: settings.pollNanoseconds,
        helpers: Helpers(monitor, reserve, settings.threads, slow, sessions, stalled, pool: epoll.fd))
      if isIn { sessions.leave(served) }
    }
  }

  /// Waits for a session to have something to do, and enters it; nil when the pool stops or the time is over.
  private func next(_ milliseconds: Int32) -> ServedSession? {
    while true {
      var event = epoll_event()
      let count = epoll_wait(epoll.fd.raw, &event, 1, milliseconds)
      guard count == 1 else {
        if count == 0 || Errno.last != .EINTR { return nil }
        continue
      }
      if event.data.u64 == 0 { return nil }
      if let served = sessions.enter(event.data.u64) { return served }
    }
  }
}

/// Whom a worker turns to.
struct Helpers {
  let monitor: Monitor
  let reserve: Reserve
  /// How many workers serve usually.
  let regulars: Int
  let slow: SlowWork
  let sessions: Sessions
  let stalled: StalledUsers
  private let pool: FD

  init(
    _ monitor: Monitor, _ reserve: Reserve, _ regulars: Int, _ slow: SlowWork, _ sessions: Sessions,
    _ stalled: StalledUsers, pool: FD
  ) {
    self.monitor = monitor
    self.reserve = reserve
    self.regulars = regulars
    self.slow = slow
    self.sessions = sessions
    self.stalled = stalled
    self.pool = pool
  }

  /// Whether a session has something to do that no worker has come for yet.
  var othersWait: Bool {
    var event = pollfd(fd: pool.raw, events: Int16(POLLIN), revents: 0)
    return poll(&event, 1, 0) > 0
  }
}
