// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

// The keeper and its workers.
//
//  1. The keeper is the process that was started. It takes no part in serving: it starts a worker, which has
//     the same table of descriptors and otherwise nothing in common with it, and waits for its end.
//  2. A worker that is ended by a signal, whatever the reason, is followed by another one. What it had open
//     is still open, what it knew lies in shared memory (`KeptState`), and the kernel sends again what it had
//     not answered. No program that uses the mount sees more than a pause.
//  3. A worker that exits has unmounted, or was told to: then the keeper exits as it did.
//  4. A worker that dies again and again has met something that the next one will meet too. Then the mount is
//     taken away, so that nobody waits for ever.

/// Watches the process that serves, and replaces it when it dies.
enum Keeper {
  private static let deathSeconds: UInt64 = 10
  /// A minute's.
  private static let mostFailures = 300

  /// Whether this kernel sends again what a dead worker had not answered.
  static var isPossible: Bool { KernelRelease.own >= KernelRelease(6, 9) }

  /// Starts the first worker and all that follow; returns in each of them.
  ///
  /// The process has one thread. After `restarts` deaths within ten seconds the next one is the last, and
  /// `giveUp` takes the mount away.
  static func start(restarts: Int, giveUp: () -> Void) throws(Errno) -> KeptState {
    let kept = try KeptState()
    for descriptor in FD.allOpen { kept.keep(descriptor, as: .keepers) }
    blockSignals()
    let victim = MemoryVictim()
    var deaths: [UInt64] = []
    var failures = 0
    while true {
      let worker = clx_fork_sharing_descriptors()
      if worker == 0 {
        victim.isWorker()
        unblockChildSignal()
        return KeptState(inheriting: kept)
      }
      guard worker > 0 else {
        let error = Errno.last
        guard kept.isServing else { throw error }
        // There may be memory, or room for a process, soon. Nobody has died of it.
        failures += 1
        if failures == 1 { DaemonLog.write("can't start another process yet: \(error.message)") }
        guard failures < mostFailures else { end("no process can be started that serves", giveUp) }
        pause(milliseconds: 200)
        continue
      }
      failures = 0
      victim.waits()
      let status = wait(for: worker)
      guard clx_exit_status(status) < 0, kept.isServing else { exit(like: status) }
      kept.died(status)
      DaemonLog.write(
        "the process that serves was ended by signal \(clx_term_signal(status)); starting another one")
      let now = monotonicNanoseconds()
      deaths = deaths.filter { now - $0 < deathSeconds * 1_000_000_000 } + [now]
      guard deaths.count <= restarts else {
        end("the process that serves has died \(deaths.count) times in \(deathSeconds) s", giveUp)
      }
      pause(milliseconds: patience(untilLast: restarts - deaths.count))
    }
  }

  private static func end(_ reason: String, _ giveUp: () -> Void) -> Never {
    DaemonLog.write(
      "\(reason); removing the mount. "
        + "Please report the lines above; 'insula mount' mounts the store again")
    giveUp()
    _exit(1)
  }

  /// How long to wait before another worker.
  ///
  /// Most deaths have to do with the moment, so the next one follows at once. Memory that others have used up
  /// comes back in a while: the last ones wait for that.
  private static func patience(untilLast left: Int) -> Int {
    switch left {
    case 0: 2000
    case 1: 500
    default: 0
    }
  }

  private static func pause(milliseconds: Int) {
    guard milliseconds > 0 else { return }
    var none = sigset_t()
    sigemptyset(&none)
    var time = timespec(tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
    sigtimedwait(&none, nil, &time)
  }

  /// Waits for the end of a worker, and passes on to it what asks us to end.
  private static func wait(for worker: Int32) -> Int32 {
    var signals = DaemonProcess.endingSignals
    sigaddset(&signals, SIGCHLD)
    while true {
      var status: Int32 = 0
      if waitpid(worker, &status, WNOHANG) == worker { return status }
      var info = siginfo_t()
      let signal = sigwaitinfo(&signals, &info)
      // A terminal sends its signals to the worker as well.
      if signal > 0, signal != SIGCHLD, info.si_code <= 0 { kill(worker, signal) }
    }
  }

  private static func exit(like status: Int32) -> Never {
    let code = clx_exit_status(status)
    if code >= 0 { _exit(code) }
    // As if we had been ended so: whoever waits for us is told the truth.
    let signal = clx_term_signal(status)
    var limit = rlimit(rlim_cur: 0, rlim_max: 0)
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    _ = Glibc.signal(signal, SIG_DFL)
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, signal)
    sigprocmask(SIG_UNBLOCK, &set, nil)
    kill(getpid(), signal)
    _exit(128 + signal)
  }

  private static func blockSignals() {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGCHLD)
    sigprocmask(SIG_BLOCK, &set, nil)
  }

  private static func unblockChildSignal() {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGCHLD)
    sigprocmask(SIG_UNBLOCK, &set, nil)
  }
}
