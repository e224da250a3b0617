// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The process that works for this one now, and must have ended before what it works on is removed.
enum HelperProcess {
  private static let running = Mutex<Int32?>(nil)

  /// The words that start a program which the kernel sends a signal when we end, whatever ends us.
  static func bound(_ words: [String], by signal: String) -> [String] {
    ["/usr/bin/setpriv", "--pdeathsig=\(signal)", "--"] + words
  }

  /// Starts one, whose end must be waited for by ``wait(for:)``.
  static func start(_ spawn: () throws(Errno) -> Int32) throws(Errno) -> Int32 {
    try running.withLock { (running) throws(Errno) in
      let pid = try spawn()
      running = pid
      return pid
    }
  }

  /// Waits for its end.
  ///
  /// It may belong to somebody else, who can stop it to keep us waiting; then it is ended.
  static func wait(for pid: Int32) throws(Errno) -> Subprocess.End {
    var information = siginfo_t()
    while true {
      // Its number stays its own until somebody has taken note of its end.
      try retrying { waitid(P_PID, id_t(pid), &information, WEXITED | WSTOPPED | WNOWAIT) }
      guard information.si_code == Int32(CLD_STOPPED) else { break }
      var status: Int32 = 0
      _ = waitpid(pid, &status, WUNTRACED)
      // A terminal's ^Z is for us too, and we go on together.
      if status >> 8 & 0xff == SIGSTOP { kill(pid, SIGKILL) }
    }
    return try running.withLock { (running) throws(Errno) in
      running = nil
      return try Subprocess.wait(pid)
    }
  }

  /// Ends it, and then does what ends this process; nothing is started from here on.
  static func end(then body: () -> Void) {
    running.withLock { running in
      if let pid = running {
        kill(pid, SIGKILL)
        _ = try? Subprocess.wait(pid)
      }
      body()
    }
  }
}
