// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Store

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
//  5. A worker that has lost the lease on the store exits at once; then the mount is taken away, and nothing
//     more is written to the store.
//  6. The process that mounts volumes is replaced in the same way; what it has mounted does not need it.
//  7. A worker ends when its last thread does. What those wait for is ended if it is a volume's program; if
//     it is an answer of the next worker's, that begins at once (`DyingWorker`). Threads that can't change
//     anything any more are left behind, and those that wait for a lock which a user holds, but for changes
//     of the registry.
//  8. Users who hold such a lock are not waited for either: ``LockWatch``.
//  9. The keeper becomes another program when it is asked to (SIGUSR2), if that program can go on from here:
//     an upgrade is a death of the worker like others (`NextProgram`). A worker that has not ended by then
//     would keep the descriptors that were: first it ends, served by the same program.

/// Watches the process that serves, and replaces it when it dies.
struct Keeper {
  /// How a worker exits that has lost the lease on the store.
  static let leaseIsLost: Int32 = 125
  private static let deathSeconds: UInt64 = 10
  /// Asks the keeper to become the installed program.
  static let restartSignal = SIGUSR2

  /// What the workers leave for each other.
  let kept: KeptState
  private let program: NextProgram
  private let helper: MountHelper
  private let replaceHelper: () throws(Errno) -> Void
  /// What is the daemon's alone in the store; nil if that can't be seen.
  let ownObjects: () -> Set<StoreIdentity>?
  /// Nil where nothing is passed through.
  private let locks: LockWatch?
  private static let nanosecondsOfCount: UInt64 = 900_000_000
  /// How often the worker may die within ten seconds.
  private let restarts: Int
  /// A minute's.
  private static let mostFailures = 300

  /// Whether this kernel sends again what a dead worker had not answered.
  static var isPossible: Bool { KernelRelease.own >= KernelRelease(6, 9) }

  /// The process has one thread.
  init(
    _ kept: KeptState, _ program: NextProgram, restarts: Int, _ helper: MountHelper, _ locks: LockWatch?,
    ownObjects: @escaping () -> Set<StoreIdentity>?, replaceHelper: @escaping () throws(Errno) -> Void
  ) {
    self.kept = kept
    self.program = program
    self.helper = helper
    self.ownObjects = ownObjects
    self.replaceHelper = replaceHelper
    self.locks = locks
    self.restarts = restarts
  }

  /// Starts the first worker and all that follow; returns in each of them.
  ///
  /// `giveUp` takes the mount away and tells why: after so many deaths the next one is the last.
  func start(giveUp: (_ reason: String, _ isLeaseLost: Bool) -> Void) throws(Errno) -> KeptState {
    blockSignals()
    let victim = MemoryVictim()
    var deaths: [UInt64] = []
    var failures = 0
    var owed = Owed()
    while true {
      program.forget()
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
        guard failures < Self.mostFailures else {
          giveUp("no process can be started that serves", false)
          closeAll()
          _exit(1)
        }
        pause(milliseconds: 200)
        continue
      }
      failures = 0
      victim.waits()
      let ended = watch(worker, &owed, victim)
      // A worker that dies may not have done what it was asked. So the next one is asked again, by this
      // process or by what it becomes: either finds the signal waiting.
      if let signal = owed.signal.take() { kill(getpid(), signal) }
      guard let status = ended else {
        // It waits for the next worker, which begins at once.
        if owed.upgrade != nil { continue }
        becomeNext(victim)
        // It could not be started, so this one goes on.
        continue
      }
      if clx_exit_status(status) == Self.leaseIsLost, kept.isServing {
        giveUp("the lease on the store is over, and another machine may have it", true)
        closeAll()
        _exit(1)
      }
      guard clx_exit_status(status) < 0, kept.isServing else { exit(like: status) }
      kept.ended(.signal(clx_term_signal(status)))
      DaemonLog.write(
        "the process that serves was ended by signal \(clx_term_signal(status)); starting another one")
      let now = monotonicNanoseconds()
      deaths = deaths.filter { now - $0 < Self.deathSeconds * 1_000_000_000 } + [now]
      guard deaths.count <= restarts else {
        let times = deaths.count == 1 ? "once" : "\(deaths.count) times"
        giveUp(
          "the process that serves has died \(times) in \(Self.deathSeconds) s\(lastSignal)", false)
        closeAll()
        _exit(1)
      }
      pause(milliseconds: patience(untilLast: restarts - deaths.count))
    }
  }

  private var lastSignal: String {
    guard case .signal(let signal)? = kept.lastReason else { return "" }
    return ", the last time by signal \(signal)"
  }

  /// How long to wait before another worker.
  ///
  /// Most deaths have to do with the moment, so the next one follows at once. Memory that others have used up
  /// comes back in a while: the last ones wait for that.
  private func patience(untilLast left: Int) -> Int {
    switch left {
    case 0: 2000
    case 1: 500
    default: 0
    }
  }

  private func pause(milliseconds: Int) {
    guard milliseconds > 0 else { return }
    var none = sigset_t()
    sigemptyset(&none)
    _ = waitForSignal(of: none, milliseconds: milliseconds)
  }

  // MARK: While a worker serves

  /// What is to be done besides waiting for the worker.
  private struct Owed {
    /// The signal that asks to end, if one has come.
    var signal: Int32?
    /// Whether the process that mounts may have ended.
    var looksForHelper = false
    /// Workers that were killed and have not ended yet.
    var dying: [Int32] = []
    /// Nil if no upgrade waits for those.
    var upgrade: PostponedUpgrade?
  }

  /// An upgrade that waits for workers that don't end.
  ///
  /// Whoever keeps them from that does not keep an upgrade away: copies of descriptors are the lesser evil.
  private struct PostponedUpgrade {
    /// How many were killed for it.
    var workers = 0
    private let end = monotonicNanoseconds() + 60 * 1_000_000_000

    var isOverdue: Bool { workers > 3 || millisecondsLeft(until: end) == 0 }
  }

  /// Waits for the end of a worker, and passes on to it what asks us to end; nil if it was ended for another
  /// program.
  private func watch(_ worker: Int32, _ owed: inout Owed, _ victim: MemoryVictim) -> Int32? {
    var signals = DaemonProcess.endingSignals
    sigaddset(&signals, SIGCHLD)
    sigaddset(&signals, Self.restartSignal)
    var stuck = 0
    var countedAt: UInt64 = 0
    while true {
      var status: Int32 = 0
      if waitpid(worker, &status, WNOHANG) == worker { return status }
      owed.dying.removeAll { process in
        guard waitpid(process, nil, WNOHANG) != 0 else { return false }
        FormerWorkers.remove(process)
        return true
      }
      if isServed, owed.looksForHelper {
        owed.looksForHelper = false
        if helper.hasEnded { reviveHelper(victim) }
      }
      if isServed, let upgrade = owed.upgrade, owed.dying.isEmpty || upgrade.isOverdue {
        if rehearse() { return end(worker, &owed) }
        owed.upgrade = nil
      }
      locks?.look(at: [worker] + owed.dying)
      // Only for a while: nobody is told of what keeps a killed worker from ending.
      let isWatched = stuck > 0 || !kept.volumes.isEmpty || locks?.isUrgent == true
      let signal = waitForSignal(of: signals, milliseconds: isWatched ? 1000 : 5000)
      // Other children end meanwhile, so time counts and not what woke us.
      let now = monotonicNanoseconds()
      if now - countedAt >= Self.nanosecondsOfCount, let dying = DyingWorker(worker) {
        (stuck, countedAt) = (stuck + 1, now)
        if let status = self.status(of: dying, second: stuck) {
          owed.dying.append(worker)
          return status
        }
        endEngines(second: stuck, for: dying)
      }
      switch signal?.number {
      case Self.restartSignal:
        guard isServed else {
          postponeUpgrade(&owed)
          continue
        }
        guard rehearse() else { continue }
        if owed.dying.isEmpty { return end(worker, &owed) }
        postponeUpgrade(&owed)
      case SIGCHLD: owed.looksForHelper = true
      case let other?:
        owed.signal = other
        // A terminal sends its signals to the worker as well.
        if signal?.isFromProcess == true { kill(worker, other) }
      case nil: break
      }
    }
  }

  /// Whether a worker serves: one that takes over closes what it does not know, and one that has unmounted
  /// is about to end.
  private var isServed: Bool { kept.isServing && !kept.isBeingTakenOver }

  private func reviveHelper(_ victim: MemoryVictim) {
    DaemonLog.write("the process that mounts volumes has ended; starting another one")
    // What dies at once is not to keep us busy.
    pause(milliseconds: 100)
    victim.givesWay()
    defer { victim.isSpared() }
    do throws(Errno) { try replaceHelper() } catch {
      DaemonLog.write("it can't be started: \(error.message); mount the tree again for volumes")
    }
  }

  /// Whether the installed program can go on from here.
  private func rehearse() -> Bool {
    if program.canTakeOver(helper) { return true }
    DaemonLog.write("\(program.path) can't take over (see above); the running program goes on")
    kept.answer(.unfit)
    return false
  }

  /// Another program would begin with a copy of the descriptors that dying workers share with us: those would
  /// hold what it closes, and no lock of the store would be free.
  private func postponeUpgrade(_ owed: inout Owed) {
    DaemonLog.write("the installed program takes over when a worker serves and all earlier ones have ended")
    if owed.upgrade == nil { owed.upgrade = PostponedUpgrade() }
    kept.answer(.later)
  }

  /// Ends a worker for another program; its status if it has ended by itself.
  private func end(_ worker: Int32, _ owed: inout Owed) -> Int32? {
    kill(worker, SIGKILL)
    var status: Int32 = 0
    var waited = 0
    while (try? retrying { waitpid(worker, &status, WNOHANG) }) == 0 {
      pause(milliseconds: 5)
      waited += 5
      guard waited % 1000 == 0 else { continue }
      locks?.look(at: [worker] + owed.dying)
      guard let dying = DyingWorker(worker) else { continue }
      if let ended = self.status(of: dying, second: waited / 1000) {
        owed.dying.append(worker)
        status = ended
        // It may have ended by itself before it was killed.
        if owed.upgrade?.isOverdue == true || clx_term_signal(ended) != SIGKILL { break }
        postponeUpgrade(&owed)
        owed.upgrade?.workers += 1
        kept.ended(.signal(SIGKILL))
        return nil
      }
      endEngines(second: waited / 1000, for: dying)
    }
    guard clx_exit_status(status) < 0, clx_term_signal(status) == SIGKILL else {
      // The next one may do it.
      postponeUpgrade(&owed)
      return status
    }
    owed.upgrade = nil
    kept.grantsWish()
    kept.ended(.wish)
    return nil
  }

  private func becomeNext(_ victim: MemoryVictim) {
    victim.givesWay()
    do throws(Errno) {
      try program.start(with: kept)
    } catch {
      DaemonLog.write("can't start \(program.path): \(error.message); the running program goes on")
      kept.answer(.failed)
      victim.isSpared()
    }
  }

  /// Threads of workers that were left behind have the same table of descriptors: what stayed open of it
  /// would have callers wait for an answer that nobody gives.
  private func closeAll() { _ = clx_close_range(0, .max, 0) }

  private func exit(like status: Int32) -> Never {
    // Threads of the worker that were left behind have the store's lock as well.
    if let lock = kept.descriptor(.storeLock) { try? lock.unlock() }
    closeAll()
    let code = clx_exit_status(status)
    if code >= 0 { _exit(code) }
    // As if we had been ended so: whoever waits for us is told the truth.
    let signal = clx_term_signal(status)
    var limit = rlimit(rlim_cur: 0, rlim_max: 0)
    setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    _ = Glibc.signal(signal, SIG_DFL)
    changeMask(SIG_UNBLOCK, [signal])
    kill(getpid(), signal)
    _exit(128 + signal)
  }

  private func blockSignals() { changeMask(SIG_BLOCK, [SIGCHLD, Self.restartSignal]) }

  private func unblockChildSignal() { changeMask(SIG_UNBLOCK, [SIGCHLD]) }

  private func changeMask(_ how: Int32, _ signals: [Int32]) {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    sigprocmask(how, &set, nil)
  }
}
