// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// The thread that throws away what apps can make again, when the store's disk is nearly full; and at any
/// time the temporary files of apps that have not run for days, and removed containers whose time is over.
final class PurgeThread: Sendable {
  private let thread: JoinableThread
  private let isOver = Condition(false)

  /// How often it looks how full the disk is.
  private static let interval = 15_000
  /// How often for files that are too old, in such intervals.
  private static let intervalsBetweenAges = 240
  /// How much of the time may go into purges that free nothing, as its part.
  private static let share: UInt64 = 20

  init(_ apps: AppService, _ rule: PurgeRule, _ limit: RemovedLimit) throws(Errno) {
    let isOver = isOver
    thread = try JoinableThread(name: "purges") {
      guard !apps.isReadOnly else { return }
      let turns = PurgeTurns()
      let isCancelled = { @Sendable in isOver.withLock { $0 } }
      var problem: String?
      func finish() {
        let before = problem
        problem =
          turns.run(isCancelled) { turn in
            Pace.giveWay()
            return apps.finishPurges(inHome: nil, begins: turn.begins, { turn.isCancelled })
              ?? apps.deleteOldRemoved(limit, .store, begins: turn.begins, { turn.isCancelled })
          } ?? nil
        apps.finishInHomes(limit, isCancelled)
        guard let problem, problem != before else { return }
        DaemonLog.write("can't remove what a purge or an uninstall has left: \(problem)")
      }
      finish()
      var round = 0
      var next: UInt64 = 0
      while !isOver.wait(milliseconds: Self.interval, until: { $0 }) {
        // Who has asked for a purge may have left before its end.
        finish()
        guard rule != .never else { continue }
        if round % Self.intervalsBetweenAges == 0 { apps.purgeOldTemporaryFiles(turns, isCancelled) }
        round += 1
        guard monotonicNanoseconds() >= next else { continue }
        let began = monotonicNanoseconds()
        let isWorthIt =
          turns.run(isCancelled) { turn in apps.purge(by: rule, turn.begins) { turn.isCancelled } } ?? true
        // What others have put into caches is looked through in vain, and there may be much of it.
        next = isWorthIt ? 0 : monotonicNanoseconds() &+ (monotonicNanoseconds() &- began) &* Self.share
      }
    }
  }

  /// Returns when it has ended; what it was removing is removed by then, or by the next process.
  func stop() {
    isOver.change { $0 = true }
    thread.join()
  }
}

extension AppService {
  /// Removes what others were stopped in, in the store itself or in a home outside of it, of users of whom
  /// `begins` says so; gives why some of it stays.
  func finishPurges(
    inHome home: [UInt8]?, begins: (_ user: UInt32) -> Bool = { _ in true },
    _ isCancelled: @escaping () -> Bool
  ) -> String? {
    let pace = Pace(most: Pace.usually)
    do {
      guard try knownRegistry() != nil else { return nil }
      try containers().finishPurges(in: home.map(Self.path), begins: begins) { () throws(Errno) in
        try pace.rest(orEndIf: isCancelled)
      }
      return nil
    } catch {
      return isCancelled() || pace.isOver ? nil : "\(error)"
    }
  }

  /// Throws away what the rule asks for, if the disk is as full as that; whether there was anything.
  func purge(
    by rule: PurgeRule, _ begins: @escaping (_ user: UInt32) -> Bool, _ isCancelled: @escaping () -> Bool
  ) -> Bool {
    guard let disk = try? diskSpace(), let goal = rule.goal(on: disk) else { return false }
    var request = PurgeRequest()
    request.goal = goal
    // What is freed elsewhere is not free here.
    return purge(
      request, because: "the disk is nearly full", reaches: reachOfStore(), begins: begins, isCancelled)
  }

  func purgeOldTemporaryFiles(_ turns: PurgeTurns, _ isCancelled: @escaping @Sendable () -> Bool) {
    _ = turns.run(isCancelled) { [self] turn in
      purgeOldTemporaryFiles(reaches: reachOfStore(), turn.begins) { turn.isCancelled }
    }
    inHomesOnOtherDisks(as: "ages", isCancelled) { [self] home in
      purgeOldTemporaryFiles(
        reaches: { RecoveryScope.home(home).reaches($0.utf8, outside: [home]) }, { _ in true }, isCancelled)
    }
  }

  private func purgeOldTemporaryFiles(
    reaches: @escaping (_ path: String) -> Bool, _ begins: @escaping (_ user: UInt32) -> Bool,
    _ isCancelled: @escaping () -> Bool
  ) {
    var request = PurgeRequest()
    request.places = [.tmp]
    request.unusedSince = wallMilliseconds() / 1000 - PurgeRule.temporaryFilesLast
    purge(
      request, because: "the app has not run for days", reaches: reaches, begins: begins, isCancelled)
  }
}
