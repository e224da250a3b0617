// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Work that takes longer than an answer may: of one user and queue one piece at a time, each on a thread of
/// its own.
///
/// What is read for a user can lie where reading takes forever, in a filesystem of theirs. Then they are the
/// one who waits.
final class ControlJobs: Sendable {
  /// What one user waits for.
  private final class Line: Sendable {
    let turn = Mutex(())
  }

  private struct Job {
    let user: UInt32
    let queue: ControlQueue
    let line: Line
    let thread: JoinableThread
    let share: BudgetShare
  }

  private struct State {
    var isEnding = false
    var next = 0
    var running: [Int: Job] = [:]
    /// Have nothing left to do but to be joined.
    var ended: [Int] = []
  }

  /// Those of one user in one queue, who wait and who work.
  private static let most = 8
  /// For those that are in work when the daemon ends.
  private let patience: Int
  private let budget: Budget

  private let state = Mutex(State())

  /// At the end, jobs that don't see that they are cancelled are left alone after that many seconds.
  init(patience: Int = 20, budget: Budget = Budget(Budget.Limits(descriptors: 0))) {
    self.patience = patience
    self.budget = budget
  }

  var isEnding: Bool { state.withLock { $0.isEnding } }

  /// Does a job for a caller, after those of the same user that were in the queue before.
  ///
  /// The connection is the job's until `afterwards` gets it back.
  func start(
    _ job: @escaping ControlJob, in queue: ControlQueue = .orders, for caller: ControlConnection,
    afterwards: @escaping @Sendable (ControlConnection) -> Void = { _ in }
  ) {
    clear()
    let user = caller.peer.account
    do throws(Errno) {
      try state.withLock { (state) throws(Errno) in
        let others = state.running.values.filter { $0.user == user && $0.queue == queue }
        guard !state.isEnding else { throw .EBUSY }
        guard others.count < Self.most else {
          budget.refuse(.orders, user)
          throw .EBUSY
        }
        let share = try BudgetShare(.orders, of: Payer(user: user), in: budget)
        let number = state.next
        state.next += 1
        let line = others.first?.line ?? Line()
        let thread = try JoinableThread(name: "job") { [self] in
          let reporter = ControlReporter(caller, self)
          let reply = line.turn.withLock { _ in
            reporter.isCancelled ? ControlReporter.cancelled : job(reporter)
          }
          if reporter.finish(reply) { afterwards(caller) }
          self.state.withLock { $0.ended.append(number) }
        }
        state.running[number] = Job(user: user, queue: queue, line: line, thread: thread, share: share)
      }
    } catch {
      var reply = ControlReply(
        ok: false, errno: error.code, message: "too many requests of yours at once; try it again")
      if !isEnding { reply.failure = ControlReply.crowded }
      if caller.send(reply) { afterwards(caller) }
    }
  }

  /// Cancels what is in work and returns when it has ended, or hangs for good; nothing is begun after that.
  func stop() {
    state.withLock { $0.isEnding = true }
    for _ in 0..<(patience * 100) {
      clear()
      if state.withLock({ $0.running.isEmpty }) { return }
      usleep(10_000)
    }
    let left = state.withLock { state in
      defer { state.running = [:] }
      return state.running.values.map { $0 }
    }
    for job in left {
      DaemonLog.write("an order of uid \(job.user) does not end; it is left alone")
      job.thread.detach()
    }
  }

  private func clear() {
    let ended = state.withLock { state in
      defer { state.ended = [] }
      return state.ended.compactMap { state.running.removeValue(forKey: $0) }
    }
    for job in ended { job.thread.join() }
  }
}

/// The one who waits for a job.
package final class ControlReporter: Sendable {
  /// More often than this nobody wants to read it.
  private static let pause: UInt64 = 100_000_000

  private let connection: ControlConnection
  private let jobs: ControlJobs
  private let lastReport = Mutex<UInt64>(0)
  /// What goes along with the last answer.
  private let passed = Mutex<SharedFD?>(nil)

  init(_ connection: ControlConnection, _ jobs: ControlJobs) {
    self.connection = connection
    self.jobs = jobs
  }

  static let cancelled = ControlReply(
    ok: false, errno: Errno.EINTR.code, message: "it was cancelled, and nothing was changed")

  /// Says how far it is; who does not listen misses it.
  package func report(_ progress: ControlProgress) {
    let now = monotonicNanoseconds()
    let isTime = lastReport.withLock { last in
      guard now &- last > Self.pause else { return false }
      last = now
      return true
    }
    guard isTime else { return }
    _ = connection.send(ControlReply(ok: true, progress: progress))
  }

  /// Has the caller get a descriptor along with the answer.
  func pass(_ descriptor: SharedFD) { passed.withLock { $0 = descriptor } }

  /// Says how it ended, or tells that nobody listens; one who was slow to read what went before gets a few
  /// seconds.
  fileprivate func finish(_ reply: ControlReply) -> Bool {
    let passed = passed.withLock { $0 }
    for _ in 0..<50 {
      if send(reply, passed) { return true }
      if isCancelled { return false }
      usleep(100_000)
    }
    return false
  }

  private func send(_ reply: ControlReply, _ passed: SharedFD?) -> Bool {
    guard let passed else { return connection.send(reply) }
    let isSent = try? passed.use { (fd) throws(Errno) in connection.send(reply, with: fd) }
    return isSent ?? false
  }

  /// Whether nobody waits for it any more, or the daemon is about to end.
  package var isCancelled: Bool { jobs.isEnding || connection.isOver }
}
