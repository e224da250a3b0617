// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// The thread that throws away what apps can make again, when the store's disk is nearly full; and at any
/// time the temporary files of apps that have not run for days.
final class PurgeThread: Sendable {
  private let thread: JoinableThread
  private let isOver = Condition(false)

  /// How often it looks how full the disk is.
  private static let interval = 15_000
  /// How often for files that are too old, in such intervals.
  private static let intervalsBetweenAges = 240

  init(_ apps: AppService, _ rule: PurgeRule) throws(Errno) {
    let isOver = isOver
    thread = try JoinableThread(name: "purges") {
      guard !apps.isReadOnly else { return }
      apps.finishPurges()
      guard rule != .never else { return }
      let isCancelled = { isOver.withLock { $0 } }
      var round = 0
      while !isOver.wait(milliseconds: Self.interval, until: { $0 }) {
        if round % Self.intervalsBetweenAges == 0 { apps.purgeOldTemporaryFiles(isCancelled) }
        apps.purge(by: rule, isCancelled)
        round += 1
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
  /// Removes what another process was stopped in.
  func finishPurges() {
    do {
      if try knownRegistry() != nil { try containers().finishPurges() }
    } catch {
      DaemonLog.write("can't remove what an interrupted purge has left: \(error)")
    }
  }

  /// Throws away what the rule asks for, if the disk is as full as that.
  func purge(by rule: PurgeRule, _ isCancelled: () -> Bool) {
    guard let disk = try? diskSpace(), let goal = rule.goal(on: disk) else { return }
    var request = PurgeRequest()
    request.goal = goal
    purge(request, because: "the disk is nearly full", isCancelled)
  }

  func purgeOldTemporaryFiles(_ isCancelled: () -> Bool) {
    var request = PurgeRequest()
    request.places = [.tmp]
    request.unusedSince = wallMilliseconds() / 1000 - PurgeRule.temporaryFilesLast
    purge(request, because: "the app has not run for days", isCancelled)
  }
}
