// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Volume

/// A backup that is being made: its view, and the process that has asked for it.
final class BackupRun: Sendable {
  private let process: ClientProcess
  let view: View
  /// What it takes of its user's budget.
  let share: BudgetShare
  /// What the next worker is to know of it.
  private let kept: SharedMemory?

  init(
    user: UInt32, pid: Int32, _ process: SharedFD, _ view: View, _ share: BudgetShare, kept: SharedMemory?
  ) {
    self.process = ClientProcess(user: user, pid: pid, process)
    self.view = view
    self.share = share
    self.kept = kept
  }

  var user: UInt32 { process.user }
  var pid: Int32 { process.pid }
  /// Whether the process that has asked for it is there.
  var isAlive: Bool { process.isAlive }

  func send(_ signal: Int32) { try? process.send(signal) }
}

/// The backups that are being made, by the numbers of their views.
package final class BackupRuns: Sendable {
  private struct State {
    var runs: [UInt32: BackupRun] = [:]
    var isEnding = false
  }
  private let state = Condition(State())

  init() {}

  /// False if nothing begins any more.
  func add(_ run: BackupRun) -> Bool {
    state.withLock { state in
      guard !state.isEnding else { return false }
      state.runs[run.view.number] = run
      return true
    }
  }

  /// The view's connection has ended.
  func remove(_ view: UInt32) { state.change { $0.runs[view] = nil } }

  func has(_ view: UInt32) -> Bool { state.withLock { $0.runs[view] != nil } }

  var all: [BackupRun] { state.withLock { $0.runs.values.inOrder { $0.pid < $1.pid } } }

  /// Nothing begins from here on, and what is under way is ended, since the store is unmounted.
  func endAll() {
    state.withLock { $0.isEnding = true }
    for signal in [SIGTERM, SIGKILL] {
      // What the others have left in their namespaces ends with the view.
      let left = all.filter(\.isAlive)
      if left.isEmpty { return }
      for run in left {
        DaemonLog.write("ending the backup of uid \(run.user), pid \(run.pid)")
        run.send(signal)
      }
      _ = state.wait(milliseconds: RunningViews.patienceMilliseconds) { $0.runs.isEmpty }
    }
  }
}
