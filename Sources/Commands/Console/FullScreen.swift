// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// A terminal whose whole screen is ours for a while: what was on it comes back, however we end but by
/// SIGKILL.
///
/// Only for one at a time. What is typed comes letter by letter and is not shown; the terminal's own keys
/// (^C, ^Z, ^\) mean what they always do.
final class FullScreen {
  enum Event: Equatable {
    case typed([ScreenKey])
    /// Another size, or the screen is to be drawn anew.
    case changed
    case timeIsOver
    /// By a signal, or because the terminal has gone.
    case ended(signal: Int32)
  }

  private let console: Console
  private let arriving: OwnedFD
  private var maskBefore = sigset_t()
  /// How the terminal was; nil while it is not ours.
  private var attributes: termios?
  private var typed: [UInt8] = []

  private static let endings = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

  /// Whether a person sits at a terminal that knows what to do.
  static func isPossible(_ context: Context) -> Bool {
    let terminal = context.environment["TERM"] ?? "dumb"
    return context.console.isTerminal && isatty(0) == 1 && terminal != "dumb" && !terminal.isEmpty
  }

  init(_ console: Console) throws(Errno) {
    self.console = console
    var set = (Self.endings + [SIGTSTP, SIGCONT, SIGWINCH]).signalSet
    arriving = OwnedFD(owning: try check(signalfd(-1, &set, Int32(SFD_CLOEXEC) | Int32(SFD_NONBLOCK))))
    sigprocmask(SIG_BLOCK, &set, &maskBefore)
    do throws(Errno) {
      try enter()
    } catch {
      sigprocmask(SIG_SETMASK, &maskBefore, nil)
      throw error
    }
  }

  /// Gives the terminal back.
  func end() {
    leave()
    sigprocmask(SIG_SETMASK, &maskBefore, nil)
  }

  /// Rows and columns; a terminal that does not say has what they always had.
  var size: (rows: Int, columns: Int) {
    var size = winsize()
    let getSize: UInt = 0x5413
    guard clx_ioctl(0, getSize, &size) == 0, size.ws_row > 0, size.ws_col > 0 else { return (24, 80) }
    return (Int(size.ws_row), Int(size.ws_col))
  }

  /// Waits for what comes next, until a moment of ``monotonicNanoseconds()``.
  func next(until deadline: UInt64) throws(Errno) -> Event {
    while true {
      let now = monotonicNanoseconds()
      guard now < deadline else { return .timeIsOver }
      let milliseconds = Int32(clamping: (deadline - now) / 1_000_000 + 1)
      let ready = try waitForAny(of: [arriving.fd, FD(0)], milliseconds: milliseconds)
      if ready[0], let event = try signalled() { return event }
      if ready[1] {
        guard let bytes = try? FD(0).readAvailable(limit: 1024) else { return .ended(signal: SIGHUP) }
        typed += bytes
        let keys = ScreenKey.take(from: &typed)
        if !keys.isEmpty { return .typed(keys) }
      }
    }
  }

  /// Nil if it changes nothing.
  private func signalled() throws(Errno) -> Event? {
    var information = signalfd_siginfo()
    let count = read(arriving.fd.raw, &information, MemoryLayout<signalfd_siginfo>.size)
    guard count == MemoryLayout<signalfd_siginfo>.size else { return nil }
    let number = Int32(truncatingIfNeeded: information.ssi_signo)
    if Self.endings.contains(number) { return .ended(signal: number) }
    if number == SIGTSTP { try stop() }
    return .changed
  }

  /// Stops as other programs do, and takes the terminal again when we go on.
  private func stop() throws(Errno) {
    leave()
    var stopping = [SIGTSTP].signalSet
    raise(SIGTSTP)
    sigprocmask(SIG_UNBLOCK, &stopping, nil)
    // Here we stand still, unless nobody could have us go on.
    sigprocmask(SIG_BLOCK, &stopping, nil)
    try enter()
  }

  private func enter() throws(Errno) {
    let before = try FD(0).terminalAttributes()
    try FD(0).set(terminalAttributes: before.passingLetters)
    attributes = before
    console.enterScreen()
  }

  private func leave() {
    guard let attributes else { return }
    self.attributes = nil
    console.leaveScreen()
    // In the background the terminal is somebody else's by now.
    if FD(0).isInForeground { try? FD(0).set(terminalAttributes: attributes) }
  }
}

extension termios {
  /// The same terminal, that passes on every letter as it comes and shows none.
  fileprivate var passingLetters: termios {
    var changed = self
    changed.c_lflag &= ~tcflag_t(ICANON | ECHO)
    return changed
  }
}
