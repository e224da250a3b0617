// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// What a process must set up before it serves a mount, and before it has a second thread.
package enum DaemonProcess {
  /// Makes this process fit to be a daemon; the signals that end it are kept for ``SignalThread``.
  package static func prepare() {
    // Modes come from the callers, who have their own umask.
    _ = umask(0)
    // The daemon must not keep the directory busy in which it happened to be started.
    _ = chdir("/")
    // SIGXFSZ: a write past a limit is an error like others.
    for ignored in [SIGHUP, SIGPIPE, SIGIO, SIGXFSZ] { _ = signal(ignored, SIG_IGN) }
    // Swift's runtime may have handlers for crashes, which start a program that looks into this one. A daemon
    // may start none, and would go on after a signal that somebody has sent; it is to end, and be replaced.
    for crash in [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP] { _ = signal(crash, SIG_DFL) }
    blockEndingSignals()
    raiseDescriptorLimit()
    // The kernel holds the callers to their own limit; ours would only stop root's files short.
    raise(RLIMIT_FSIZE)
  }

  /// Corresponds to `setsid(2)`: the terminal's signals no longer reach us.
  package static func leaveSession() { _ = setsid() }

  /// Lets this process have as many descriptors as it may.
  static func raiseDescriptorLimit() { raise(RLIMIT_NOFILE) }

  /// How many descriptors this process may have.
  static func descriptorLimit() -> Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    return Int(clamping: limit.rlim_cur)
  }

  /// The soft limit becomes the hard one.
  private static func raise(_ resource: __rlimit_resource) {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(resource.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
  }

  /// From here on, this process leaves no image of its memory when it dies: plaintext of users may be there.
  ///
  /// The process stays one that root may look at in /proc. The limit is one byte, since the kernel hands the
  /// image to a program (core(5)) where it is none.
  static func leaveNoImage() {
    var limit = rlimit(rlim_cur: 1, rlim_max: 1)
    _ = setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
  }

  /// Sends us a signal when the process that has started us ends.
  ///
  /// Corresponds to PR_SET_PDEATHSIG of `prctl(2)`.
  static func watchParent() { _ = clx_prctl(1, UInt(parentSignal)) }

  static let parentSignal = SIGUSR1

  private static func blockEndingSignals() {
    var set = endingSignals
    sigaddset(&set, parentSignal)
    _ = pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  static var endingSignals: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in [SIGTERM, SIGINT, SIGQUIT] { sigaddset(&set, signal) }
    return set
  }
}

/// Waits for the signals that end a daemon.
package enum SignalThread {
  /// Calls `action` with how often it was asked to end, 1 the first time; `orphaned` when the process that
  /// has started us has ended; `everyMinute` now and then.
  ///
  /// The thread lives as long as the process.
  package static func start(
    everyMinute: @escaping @Sendable () -> Void, orphaned: @escaping @Sendable () -> Void,
    action: @escaping @Sendable (Int) -> Void
  ) throws(Errno) {
    let thread = try JoinableThread(name: "signals") {
      var times = 0
      while true {
        var set = DaemonProcess.endingSignals
        sigaddset(&set, DaemonProcess.parentSignal)
        switch waitForSignal(of: set, milliseconds: 60_000)?.number {
        case DaemonProcess.parentSignal: orphaned()
        case .some:
          times += 1
          action(times)
        case nil: everyMinute()
        }
      }
    }
    thread.detach()
  }
}
