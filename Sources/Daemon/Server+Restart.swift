// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO

extension Server {
  /// Has the keeper put the installed program in place of this one; there is an answer only if it does not.
  func restart() -> ControlReply {
    guard let kept, keeperPID != 0 else {
      return .failure(
        ControlFailure(
          Keeper.isPossible
            ? "the process that replaces the daemon has ended; unmount the store and mount it again"
            : "this requires Linux 6.9 or later; unmount the store and mount it again", .EOPNOTSUPP))
    }
    DaemonLog.write("asked to put the installed program in place of this one")
    // The next process finds it as well; what is on the disk outlives that too.
    grants.recordOwed()
    consents.finish()
    kept.awaitAnswer()
    do throws(Errno) {
      let keeper = try ProcessID.open(keeperPID)
      try keeper.fd.send(signal: Keeper.restartSignal)
    } catch {
      return .failure(ControlFailure("can't ask the keeper: \(error.message)", error))
    }
    return .failure(Self.failure(kept.answer(milliseconds: 20_000)))
  }

  private static func failure(_ answer: KeptState.Answer?) -> ControlFailure {
    switch answer {
    case .unfit:
      ControlFailure(
        "the installed program can't take over from the running one, which goes on; the daemon's log says "
          + "why. Unmount the store and mount it again to use the installed program", .EOPNOTSUPP)
    case .failed:
      ControlFailure("the installed program could not be started; the running one goes on", .EIO)
    case .later:
      ControlFailure(
        "a process that served before has not ended, since it waits for a volume that does not answer; the "
          + "installed program takes over when it has ended, or in a minute", .EAGAIN)
    case .some(.none), nil:
      ControlFailure("the keeper does not answer; the running program goes on", .EAGAIN)
    }
  }

  /// What became of the last wish; a keeper that is gone has none.
  func noteUpgrade(in report: inout ServerReport) {
    guard keeperPID != 0, let answer = kept?.lastAnswer else { return }
    if answer == .later {
      report.upgradeWaits = true
    } else {
      report.upgradeFailure = Self.failure(answer).message
    }
  }

  /// The process that replaces this one when it dies; 0 where there is none, or none any more.
  var keeperPID: Int32 {
    guard kept != nil else { return 0 }
    return getppid() == keeper ? keeper : 0
  }
}
