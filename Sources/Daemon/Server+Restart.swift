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
    kept.awaitAnswer()
    do throws(Errno) {
      let keeper = try ProcessID.open(keeperPID)
      try keeper.fd.send(signal: Keeper.restartSignal)
    } catch {
      return .failure(ControlFailure("can't ask the keeper: \(error.message)", error))
    }
    switch kept.answer(milliseconds: 20_000) {
    case .unfit:
      return .failure(
        ControlFailure(
          "the installed program can't take over from the running one, which goes on; the daemon's log says "
            + "why. Unmount the store and mount it again to use the installed program", .EOPNOTSUPP))
    case .failed:
      return .failure(
        ControlFailure("the installed program could not be started; the running one goes on", .EIO))
    case .later:
      return .failure(
        ControlFailure(
          "a volume does not answer, and a process that served before waits for it; the installed program "
            + "takes over when that has ended. 'insula volume eject --force' ends it at once", .EAGAIN))
    case .some(.none), nil:
      return .failure(ControlFailure("the keeper does not answer; the running program goes on", .EAGAIN))
    }
  }

  /// The process that replaces this one when it dies; 0 where there is none, or none any more.
  var keeperPID: Int32 {
    guard kept != nil else { return 0 }
    return getppid() == keeper ? keeper : 0
  }
}
