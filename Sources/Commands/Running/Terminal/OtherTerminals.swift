// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// Standard streams that are terminals of other sessions.
///
/// `setsid`, `su -c` and others start a command in a session without a terminal, and leave it the descriptors
/// of one at which people type for other programs. The kernel lets such a command read there at any time:
/// only the terminal of one's own session has a foreground. So nothing of it reaches the command: its input
/// is at its end, and what it writes goes through a pipe. This process copies that to the terminal, and a
/// child of it goes on with the command.
///
/// Only for a process of one thread.
enum OtherTerminals {
  enum Outcome {
    /// This process has copied, and the command has ended in another.
    case ended(Int32)
    /// The command goes on in this process; `copier` is the one that copies, nil if there is none.
    case goesOn(copier: Int32?)
  }

  /// Whether a command would read from a terminal of another session.
  static var areRead: Bool { isOther(FD(0), hasTerminal: FD.hasControllingTerminal) }

  private static func isOther(_ stream: FD, hasTerminal: Bool) -> Bool {
    stream.isTerminal && !(hasTerminal && stream.isControllingTerminal)
  }

  /// Replaces them; `hasTerminal` says whether the terminal of our own session will be relayed.
  static func replace(hasTerminal: Bool) throws(Errno) -> Outcome {
    let others = (0..<3).map { FD(Int32($0)) }.filter { isOther($0, hasTerminal: hasTerminal) }
    if others.contains(FD(0)) {
      // Its writing end is closed at once.
      let ends = try LinuxIO.pipe()
      try check(dup2(ends.read.fd.raw, 0))
    }
    let outputs = others.filter { $0 != FD(0) }
    if outputs.isEmpty { return .goesOn(copier: nil) }
    try ActingUser.requireOneThread()
    let copies = try divert(outputs)
    let signals = passed
    let before = OwnTerminal.block(signals)
    // Without that a child's end is not told.
    _ = signal(SIGCHLD, SIG_DFL)
    let own = getpid()
    let child = try check(clx_fork())
    if child == 0 {
      try OwnTerminal.endWithParent(own)
      for copy in copies { copy.close() }
      OwnTerminal.restore(before)
      return .goesOn(copier: own)
    }
    // Else the pipes would never end.
    for copy in copies { for stream in copy.streams { try check(dup2(copy.terminal.raw, stream.raw)) } }
    var copier = TerminalCopier(copies: copies, child: child, before: before)
    return .ended(try copier.run(signals))
  }

  /// Signals that are passed on: those that end a process unless it has something else in mind, and that the
  /// caller does not ignore.
  private static var passed: [Int32] {
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM].filter { !RunningProgram.isIgnored($0) }
      + [SIGCHLD]
  }

  /// Puts a pipe in the place of each.
  private static func divert(_ outputs: [FD]) throws(Errno) -> [TerminalCopy] {
    var copies: [TerminalCopy] = []
    for output in outputs {
      // One pipe for what is one terminal keeps the order in which both were written.
      let index = copies.firstIndex { isSame($0.terminal, output) }
      if let index, let first = copies[index].streams.first {
        try check(dup2(first.raw, output.raw))
        copies[index].streams.append(output)
        continue
      }
      let terminal = FD(try check(fcntl(output.raw, F_DUPFD_CLOEXEC, 3)))
      let ends = try LinuxIO.pipe()
      try check(dup2(ends.write.fd.raw, output.raw))
      copies.append(TerminalCopy(terminal: terminal, pipe: ends.takeRead().release(), streams: [output]))
    }
    return copies
  }

  private static func isSame(_ one: FD, _ other: FD) -> Bool {
    guard let first = try? one.status(), let second = try? other.status() else { return false }
    return first.isSameObject(as: second)
  }
}
