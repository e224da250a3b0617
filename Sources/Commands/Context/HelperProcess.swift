// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Synchronization

/// The processes that work for this one now, and must have ended before what they work on is removed.
enum HelperProcess {
  private static let running = Mutex<Set<Int32>>([])

  /// The words that start a program which the kernel sends a signal when we end, whatever ends us.
  static func bound(_ words: [String], by signal: String) -> [String] {
    ["/usr/bin/setpriv", "--pdeathsig=\(signal)", "--"] + words
  }

  /// Starts one, whose end must be waited for by ``wait(for:)``.
  static func start(_ spawn: () throws(Errno) -> Int32) throws(Errno) -> Int32 {
    try running.withLock { (running) throws(Errno) in
      let pid = try spawn()
      running.insert(pid)
      return pid
    }
  }

  /// Waits for its end.
  ///
  /// It may belong to somebody else, who can stop it to keep us waiting, or take it over as a debugger does;
  /// then it is ended. `seized` is told of a debugger. What it writes to `outputs` is passed on.
  ///
  /// What it works on may keep it waiting, as a file does which somebody holds, and for that there is no
  /// signal. Where it does not get on, `meanwhile` does something else, and false says that there is nothing:
  /// then it is ended after half an hour, of which `givenUp` is told.
  static func wait(
    for pid: Int32, outputs: [RelayedOutput] = [], patience: Patience = .endless,
    seized: () -> Void = {}, meanwhile: () -> Bool = { false }, givenUp: () -> Void = {}
  ) throws(Errno) -> Subprocess.End {
    let process = try ProcessID.open(pid)
    var pace = ProcessPace(pid)
    defer { for output in outputs { output.passOn() } }
    while true {
      // Its number stays its own until somebody has taken note of its end.
      var information = siginfo_t()
      try retrying { waitid(P_PID, id_t(pid), &information, WEXITED | WSTOPPED | WNOWAIT | WNOHANG) }
      if information.si_signo == 0 {
        if isSeized(pid) {
          seized()
          return endNow(pid)
        }
        let stood = patience.isEndless ? 0 : pace.secondsWithoutProgress()
        if stood >= patience.before, !meanwhile(), stood >= patience.most {
          givenUp()
          return endNow(pid)
        }
        // A stop does not end this wait; and whoever traces us may have to take note of its end first.
        let ready = try waitForAny(of: [process.fd] + outputs.map(\.source), milliseconds: 500)
        if ready[0] { poll(nil, 0, 20) }
        for output in outputs { output.passOn() }
        continue
      }
      guard information.si_code == Int32(CLD_STOPPED) else { break }
      var status: Int32 = 0
      _ = waitpid(pid, &status, WUNTRACED)
      // A terminal's ^Z is for us too, and we go on together.
      if status >> 8 & 0xff == SIGSTOP { kill(pid, SIGKILL) }
    }
    return try running.withLock { (running) throws(Errno) in
      running.remove(pid)
      return try Subprocess.wait(pid)
    }
  }

  /// Ends them, and then does what ends this process; nothing is started from here on.
  static func end(then body: () -> Void) {
    running.withLock { running in
      for pid in running { kill(pid, SIGKILL) }
      // One that the kernel keeps waiting does nothing any more when it comes back.
      let end = monotonicNanoseconds() + endTime
      for pid in running { _ = endAtOnce(pid, before: end) }
      body()
    }
  }

  private static func endNow(_ pid: Int32) -> Subprocess.End {
    running.withLock { running in
      running.remove(pid)
      return endAtOnce(pid, before: monotonicNanoseconds() + endTime)
    }
  }

  private static let endTime: UInt64 = 10_000_000_000

  /// Kills a process of ours, and waits until it does nothing any more.
  ///
  /// Whoever traces it learns of its end first, and may keep that from us: then we take no note of it.
  private static func endAtOnce(_ pid: Int32, before end: UInt64) -> Subprocess.End {
    kill(pid, SIGKILL)
    if let process = try? ProcessID.open(pid) {
      _ = try? process.fd.waitUntilReadable(milliseconds: Int32(clamping: millisecondsLeft(until: end)))
    }
    var status: Int32 = 0
    guard waitpid(pid, &status, WNOHANG) == pid else { return .signalled(SIGKILL) }
    let signal = clx_term_signal(status)
    return signal == 0 ? .exited(clx_exit_status(status)) : .signalled(signal)
  }

  /// Whether somebody else's process is traced by another one than traces us.
  private static func isSeized(_ pid: Int32) -> Bool {
    guard let user = ProcessID.user(of: pid), user != ProcessID.user else { return false }
    let own = ProcessID.field("TracerPid", of: "self")
    do throws(Errno) {
      let directory = try FD.cwd.openFollowing("/proc/\(pid)/task", O_RDONLY | O_DIRECTORY)
      return try directory.fd.entries().contains { thread in
        let number = String(decoding: thread.name, as: UTF8.self)
        let tracer = ProcessID.field("TracerPid", of: "\(pid)/task/\(number)")
        return tracer != nil && tracer != "0" && tracer != own
      }
    } catch {
      // It has ended.
      return false
    }
  }

  // MARK: In such a process

  /// Keeps other processes of our user's from tracing this one, if another user's waits for it.
  static func refuseTracers() {
    // PR_SET_DUMPABLE.
    if ProcessID.user(of: getppid()) != ProcessID.user { _ = clx_prctl(4, 0) }
  }
}
