// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// What the relay and the keeper of a terminal say to each other: two bytes.
enum TerminalMessage: Equatable {
  /// To the relay: the command has stopped.
  case stopped
  /// To the keeper: the command goes on, and has the terminal or not.
  case goOn(inForeground: Bool)
  /// To the keeper: a signal for `insula run` alone, which passes it on to the app.
  case signal(Int32)
  /// To the keeper: a signal of the terminal's, which all processes of the command get.
  case signalAll(Int32)

  private var bytes: [UInt8] {
    switch self {
    case .stopped: [0, 0]
    case .goOn(let inForeground): [1, inForeground ? 1 : 0]
    case .signal(let number): [2, UInt8(clamping: number)]
    case .signalAll(let number): [3, UInt8(clamping: number)]
    }
  }

  /// Nobody is there to miss it if the other end has gone.
  func send(to end: FD) {
    let bytes = bytes
    _ = Glibc.send(end.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Takes the next one; nil when the other end has gone.
  static func receive(from end: FD) -> TerminalMessage? {
    var bytes: [UInt8] = [0, 0]
    guard let count = try? retrying({ recv(end.raw, &bytes, bytes.count, 0) }), count == bytes.count else {
      return nil
    }
    switch bytes[0] {
    case 0: return .stopped
    case 1: return .goOn(inForeground: bytes[1] == 1)
    case 2: return .signal(Int32(bytes[1]))
    case 3: return .signalAll(Int32(bytes[1]))
    default: return nil
    }
  }
}

/// The first process of the session at the app's terminal: it waits for `insula run`, which is a process
/// group of its own there.
///
/// It is what that group needs to be stopped by the terminal: a parent in the same session. All signals are
/// blocked.
struct TerminalKeeper {
  let terminal: FD
  let relay: FD
  let child: Int32

  func run() -> Never {
    // Whichever of the two is first.
    setpgid(child, child)
    var ended = [SIGCHLD].signalSet
    let endings = FD(signalfd(-1, &ended, Int32(SFD_CLOEXEC)))
    while true {
      guard let ready = try? waitForAny(of: [endings, relay], milliseconds: -1) else { continue }
      if ready[0] { look(endings) }
      if ready[1] { obey(TerminalMessage.receive(from: relay)) }
    }
  }

  private func look(_ endings: FD) {
    var information = signalfd_siginfo()
    _ = read(endings.raw, &information, MemoryLayout<signalfd_siginfo>.size)
    while let end = ChildEnd.next(of: child) {
      switch end {
      case .stopped: TerminalMessage.stopped.send(to: relay)
      case .ended(let status): _exit(status)
      }
    }
  }

  private func obey(_ message: TerminalMessage?) {
    switch message {
    case .goOn(let inForeground):
      if inForeground { try? terminal.setForeground(child) }
      kill(-child, SIGCONT)
    // Queued, it is not taken for one of the terminal's.
    case .signal(let number): sigqueue(child, number, sigval())
    case .signalAll(let number): kill(-child, number)
    case .stopped: break
    case nil:
      kill(-child, SIGKILL)
      _exit(128 + SIGKILL)
    }
  }
}
