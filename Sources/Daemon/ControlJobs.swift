// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Synchronization

/// Work that takes longer than an answer may: one piece at a time, each on a thread of its own.
final class ControlJobs: Sendable {
  private struct State {
    var isEnding = false
    var next = 0
    var running: [Int: JoinableThread] = [:]
    /// Have nothing left to do but to be joined.
    var ended: [Int] = []
  }

  /// Those who wait and those who work.
  private static let most = 16

  private let state = Mutex(State())
  private let turn = Mutex(())

  var isEnding: Bool { state.withLock { $0.isEnding } }

  /// Does a job for a caller, after those that were there before; the connection ends with it.
  func start(_ job: @escaping ControlJob, for caller: ControlConnection) {
    clear()
    do throws(Errno) {
      try state.withLock { (state) throws(Errno) in
        guard !state.isEnding, state.running.count < Self.most else { throw .EBUSY }
        let number = state.next
        state.next += 1
        state.running[number] = try JoinableThread(name: "job") { [self] in
          let reporter = ControlReporter(caller, self)
          let reply = turn.withLock { _ in
            reporter.isCancelled ? ControlReporter.cancelled : job(reporter)
          }
          reporter.finish(reply)
          self.state.withLock { $0.ended.append(number) }
        }
      }
    } catch {
      _ = caller.send(
        ControlReply(ok: false, errno: error.code, message: "too much is going on at once; try it again"))
    }
  }

  /// Cancels what is in work and returns when it has ended; nothing is begun after that.
  func stop() {
    let running = state.withLock { state in
      state.isEnding = true
      defer { state.running = [:] }
      return state.running.values.map { $0 }
    }
    for thread in running { thread.join() }
  }

  private func clear() {
    let ended = state.withLock { state in
      defer { state.ended = [] }
      return state.ended.compactMap { state.running.removeValue(forKey: $0) }
    }
    for thread in ended { thread.join() }
  }
}

/// The one who waits for a job.
package final class ControlReporter: Sendable {
  /// More often than this nobody wants to read it.
  private static let pause: UInt64 = 100_000_000

  private let connection: ControlConnection
  private let jobs: ControlJobs
  private let lastReport = Mutex<UInt64>(0)

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

  /// Says how it ended; one who was slow to read what went before gets a few seconds.
  fileprivate func finish(_ reply: ControlReply) {
    for _ in 0..<50 {
      if connection.send(reply) || isCancelled { return }
      usleep(100_000)
    }
  }

  /// Whether nobody waits for it any more, or the daemon is about to end.
  package var isCancelled: Bool { jobs.isEnding || connection.isOver }
}
