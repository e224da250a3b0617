// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// What has become of a process that was started.
enum ChildEnd {
  case stopped
  /// With its exit status, or 128 and the number of the signal that has ended it.
  case ended(Int32)

  /// What is new; nil while it runs.
  ///
  /// A child that nobody can tell of any more has ended.
  static func next(of pid: Int32) -> ChildEnd? {
    var status: Int32 = 0
    guard let found = try? retrying({ waitpid(pid, &status, WNOHANG | WUNTRACED) }) else {
      return .ended(ExitCode.failed.rawValue)
    }
    guard found == pid else { return nil }
    if status & 0xff == 0x7f { return .stopped }
    let signal = clx_term_signal(status)
    return .ended(signal == 0 ? clx_exit_status(status) : 128 + signal)
  }

  /// Ends a child that has nothing more to do, and waits until it has gone.
  static func force(_ pid: Int32) {
    _ = kill(pid, SIGKILL)
    _ = try? retrying { waitpid(pid, nil, 0) }
  }
}
