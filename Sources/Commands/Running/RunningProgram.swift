// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// The sandbox with the app in it: started, and waited for as if the app were a child of ours.
///
/// bubblewrap has a process outside of the sandbox that waits like we do, and one inside that is the first
/// there; the app is a child of that one. All are in our process group, so what a terminal sends reaches the
/// app by itself, and stopping and going on too. What only we are sent is passed on.
struct RunningProgram {
  let path: String
  let environment: [String]
  let filter: SystemCallFilter
  /// Who sends the whole group what came from the person's terminal, if the app has one of its own.
  let keeper: Int32?
  let limits: EnforcedLimits
  /// Asks the person at the terminal for the app, where there is one.
  var agent: RunAgent?
  /// Reads for the app what it is told of what is private, if it can ask for that.
  var reader: RunReader?

  /// Signals that end a process unless it has something else in mind, by the names that `env` has for them.
  private static let endings: [(name: String, number: Int32)] = [
    ("HUP", SIGHUP), ("INT", SIGINT), ("QUIT", SIGQUIT), ("TERM", SIGTERM), ("USR1", SIGUSR1),
    ("USR2", SIGUSR2),
    ("ALRM", SIGALRM),
  ]

  /// Runs it to its end; the exit status.
  ///
  /// `arguments` gets the names of the signals that we have had bubblewrap ignore.
  func run(_ streams: FileStreams, _ arguments: ([String]) -> [String]) throws -> Int32 {
    // What we were started without, the app goes without too.
    let kept = Self.endings.filter { !Self.isIgnored($0.number) }
    var before = sigset_t()
    var waited = sigset_t()
    sigemptyset(&waited)
    for signal in kept { sigaddset(&waited, signal.number) }
    sigaddset(&waited, SIGCHLD)
    sigprocmask(SIG_BLOCK, &waited, &before)
    let pid = try spawn(arguments(kept.map(\.name)), ignoring: kept.map(\.number), mask: &before)
    let arriving = OwnedFD(owning: try check(signalfd(-1, &waited, Int32(SFD_CLOEXEC))))
    agent?.begin()
    reader?.begin()
    defer { reader?.end() }
    var ending: Int32?
    while true {
      if case .ended(let status) = ChildEnd.next(of: pid) {
        // Whoever has ended us does not see that it took SIGKILL.
        if let ending, status == 128 + SIGKILL { return 128 + ending }
        return status
      }
      guard try wait(for: arriving.fd, streams) else { continue }
      var information = signalfd_siginfo()
      let count = read(arriving.fd.raw, &information, MemoryLayout<signalfd_siginfo>.size)
      guard count == MemoryLayout<signalfd_siginfo>.size else { continue }
      let number = Int32(truncatingIfNeeded: information.ssi_signo)
      guard number != SIGCHLD else { continue }
      // The kernel's own are the terminal's, and went to all of the group; but that the terminal is gone, it
      // only tells the first process of the session.
      let isTheGroups = information.ssi_code == SI_USER && Int32(bitPattern: information.ssi_pid) == keeper
      let isOurs =
        information.ssi_code <= 0 && !isTheGroups || number == SIGHUP && getsid(0) == getpid()
      if isOurs, !Self.pass(number, to: pid) {
        ending = number
        _ = kill(pid, SIGKILL)
      }
    }
  }

  /// Waits until something happens, and does what those have to do that work for the app; whether a signal
  /// has come.
  private func wait(for arriving: FD, _ streams: FileStreams) throws(Errno) -> Bool {
    let (asking, reading) = (agent?.watched ?? [], reader?.watched ?? [])
    let patience = [agent?.patience, reader?.patience].compactMap { $0 }.filter { $0 >= 0 }.min()
    let ready = try streams.relay(until: [arriving] + asking + reading, milliseconds: patience ?? -1)
    agent?.look(Array(ready.dropFirst().prefix(asking.count)))
    let readable = zip(reading, ready.suffix(reading.count)).filter(\.1).map(\.0)
    reader?.look(readable.contains)
    return ready.first == true
  }

  static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
  }

  /// Passes a signal on to the app: the first child of the first process in the sandbox.
  ///
  /// False if there is no app yet; an app that has just ended, maybe of the same signal, needs none.
  private static func pass(_ number: Int32, to bubblewrap: Int32) -> Bool {
    // For as long as it takes to begin; what still ignores it then, means that. That a process has started
    // another one, or become another program, the kernel tells nobody but its tracer.
    for round in 0..<mostRounds {
      if let first = firstChild(of: bubblewrap), let app = firstChild(of: first),
        let process = try? ProcessID.open(app), firstChild(of: first) == app
      {
        guard isBeginning(app, number) else {
          try? process.fd.send(signal: number)
          return true
        }
      } else if ProcessID.field("State", of: "\(bubblewrap)")?.hasPrefix("Z") != false {
        return true
      } else if round >= roundsWithoutApp {
        return false
      }
      usleep(5000)
    }
    return true
  }

  /// Half a minute: a busy machine takes seconds to start an app.
  private static let mostRounds = 6000
  /// For so long bubblewrap may say that the app has ended, or start it.
  private static let roundsWithoutApp = 40

  /// Whether a process has not become the app yet, and does not get signals before.
  private static func isBeginning(_ pid: Int32, _ number: Int32) -> Bool {
    let name = ProcessID.field("Name", of: "\(pid)")
    guard name == "bwrap" || name == "env",
      let ignored = ProcessID.field("SigIgn", of: "\(pid)").flatMap({ UInt64($0, radix: 16) })
    else { return false }
    return ignored >> UInt64(number - 1) & 1 == 1
  }

  private static func firstChild(of pid: Int32) -> Int32? {
    FD.text(of: "/proc/\(pid)/task/\(pid)/children", limit: 4096)?.parts(between: " ").first.flatMap {
      Int32($0)
    }
  }

  private func spawn(
    _ arguments: [String], ignoring: [Int32], mask: inout sigset_t
  ) throws -> Int32 {
    try Bubblewrap.start(
      path, arguments, environment: environment, filter: filter.program, as: Sandbox.filterDescriptor,
      ignoring: ignoring, mask: &mask, limits.starting)
  }
}
