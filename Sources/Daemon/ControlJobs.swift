// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Runs jobs: requests that take longer than the control thread may.
///
/// Each user and queue runs one job at a time, on a thread of its own.
///
/// What is read for a user may be on a filesystem of theirs that never answers. Then only that user waits.
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

  /// Those of one user in one queue, which wait or run.
  private static let most = 8
  /// For those that run when the daemon ends.
  private let grace: Int
  private let budget: Budget

  /// Changed when a job has ended.
  private let state = Condition(State())

  /// At the end, jobs that don't see that they are cancelled are left alone after that many seconds.
  init(grace: Int = 20, budget: Budget = Budget(Budget.Limits(descriptors: 0))) {
    self.grace = grace
    self.budget = budget
  }

  var isEnding: Bool { state.withLock { $0.isEnding } }

  /// Does a job for a caller, after those of the same user that were in the queue before.
  ///
  /// The connection is the job's until `afterwards` gets it back.
  func start(
    _ job: @escaping ControlJob, in queue: ControlQueue, for connection: ControlConnection,
    afterwards: @escaping @Sendable (ControlConnection) -> Void = { _ in }
  ) {
    clear()
    let user = connection.caller.account
    do throws(Errno) {
      try state.withLock { (state) throws(Errno) in
        let others = state.running.values.filter { $0.user == user && $0.queue == queue }
        guard !state.isEnding else { throw .EBUSY }
        guard others.count < Self.most else {
          budget.refuse(.requests, user)
          throw .EBUSY
        }
        let share = try BudgetShare(.requests, of: Payer(user: user), in: budget)
        let number = state.next
        state.next += 1
        let line = others.first?.line ?? Line()
        let thread = try JoinableThread(name: "job") { [self] in
          let reporter = ControlReporter(connection, self)
          let reply = line.turn.withLock { _ in
            reporter.isCancelled ? ControlReporter.cancelled : job(reporter)
          }
          if reporter.finish(reply) { afterwards(connection) }
          self.state.change { $0.ended.append(number) }
        }
        state.running[number] = Job(user: user, queue: queue, line: line, thread: thread, share: share)
      }
    } catch {
      let failure = isEnding ? ControlFailure(ControlFailure.crowded.message, error) : .crowded
      if connection.send(.reply(.failure(failure))) { afterwards(connection) }
    }
  }

  /// Cancels what runs and returns when it has ended, or hangs for good; nothing is begun after that.
  func stop() {
    state.withLock { $0.isEnding = true }
    _ = state.wait(milliseconds: grace * 1000) { $0.ended.count == $0.running.count }
    clear()
    let left = state.withLock { state in
      defer { state.running = [:] }
      return state.running.values.map { $0 }
    }
    for job in left {
      DaemonLog.write("a request of uid \(job.user) does not end; the daemon no longer waits for it")
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

/// Reports to the client that waits for a job.
package final class ControlReporter: Sendable {
  private let connection: ControlConnection
  private let jobs: ControlJobs
  /// What goes along with the last answer.
  private let passed = Mutex<SharedFD?>(nil)

  init(_ connection: ControlConnection, _ jobs: ControlJobs) {
    self.connection = connection
    self.jobs = jobs
  }

  static let cancelled = ControlReply.failure(
    ControlFailure("cancelled; nothing was changed", .EINTR))

  /// Reports progress; a client that does not read misses it.
  package func report(_ progress: InstallProgress) { _ = connection.send(.progress(progress)) }

  /// Has the caller get a descriptor along with the answer.
  func pass(_ descriptor: SharedFD) { passed.withLock { $0 = descriptor } }

  /// Says how it ended, or tells that nobody listens; one who was slow to read what went before gets a few
  /// seconds.
  fileprivate func finish(_ reply: ControlReply) -> Bool {
    let passed = passed.withLock { $0 }
    var isBegun = false
    for _ in 0..<50 {
      if !isBegun { isBegun = send(reply, passed) }
      if isBegun, connection.sendRest() { return true }
      if isCancelled { return false }
      // Woken as soon as something of that has been read; that the daemon ends is looked at in between.
      _ = try? connection.fd.waitUntilWritable(milliseconds: 100)
    }
    return false
  }

  private func send(_ reply: ControlReply, _ passed: SharedFD?) -> Bool {
    guard let passed else { return connection.send(.reply(reply)) }
    let isSent = try? passed.use { (fd) throws(Errno) in connection.send(.reply(reply), with: fd) }
    return isSent ?? false
  }

  /// Whether nobody waits for it any more, or the daemon is about to end.
  package var isCancelled: Bool { jobs.isEnding || connection.isOver }
}
