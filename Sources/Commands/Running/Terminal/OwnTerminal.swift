// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import LinuxIO

/// A terminal of the app's own, where the person has one.
///
/// Whoever has a terminal can have it listen to any process group of theirs, and read what is typed for
/// others. So no app has the person's: this process keeps that and relays (``TerminalRelay``). A second one
/// is the first of a session at a pseudo-terminal (``TerminalKeeper``). Its child goes on with the command,
/// in a process group that can be stopped and continued there.
///
/// A terminal of another session is not relayed: ``OtherTerminals`` replaces it.
///
/// Only for a process of one thread.
enum OwnTerminal {
  enum Outcome {
    /// This process has relayed, and the command has ended in another.
    case ended(Int32)
    /// The command goes on in this process.
    ///
    /// `prompts` leads to the one that can ask the person at the terminal (``PromptMessage``); nil where
    /// nobody types for the command.
    case goesOn(TerminalProcesses, prompts: FD?)
  }

  /// Moves what follows to a terminal that is `owner`'s.
  static func move(owner: UInt32, _ context: Context) throws -> Outcome {
    do throws(Errno) {
      if let known = TerminalProcesses(context.environment) {
        if let parent = known.keeper ?? known.copier { try endWithParent(parent) }
        return .goesOn(known, prompts: nil)
      }
      guard let outer = FD.controllingTerminal() else {
        switch try OtherTerminals.replace(hasTerminal: false) {
        case .ended(let status): return .ended(status)
        case .goesOn(let copier): return .goesOn(TerminalProcesses(copier: copier), prompts: nil)
        }
      }
      switch try OtherTerminals.replace(hasTerminal: true) {
      case .ended(let status): return .ended(status)
      // It stays open for as long as this process, or is closed in the others.
      case .goesOn(let copier): return try split(outer.release(), owner, copier, context)
      }
    } catch {
      throw CommandFailure(.failed, "can't create a terminal for it: \(error.message)")
    }
  }

  /// Signals whose meaning for the app the relay works out.
  private static let relayed = [
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGWINCH,
    SIGCHLD,
  ]

  private static func split(
    _ outer: FD, _ owner: UInt32, _ copier: Int32?, _ context: Context
  ) throws(Errno) -> Outcome {
    try ActingUser.requireOneThread()
    let (master, slave) = try Pairs.terminal(owner: owner)
    try slave.set(terminalAttributes: outer.terminalAttributes())
    try? master.setTerminalSize(like: outer)
    let ends = try Pairs.messages()
    let prompts = try Pairs.messages()
    let streams = (0..<3).map { FD(Int32($0)) }.filter(\.isControllingTerminal)
    // Who reads or writes elsewhere may not want it, and what is beside it in a pipeline may.
    let takesTerminal = streams.contains(FD(0)) && streams.contains(FD(1)) && outer.isInForeground
    let before = block(relayed)
    // Without that a child's end is not told.
    _ = signal(SIGCHLD, SIG_DFL)
    let own = getpid()
    let keeper = try check(clx_fork())
    if keeper != 0 {
      close(slave, ends.theirs, prompts.theirs)
      var relay = TerminalRelay(
        outer: outer, master: master, keeping: ends.mine, prompts: prompts.mine, keeper: keeper,
        word: context.ownValue(.promptWord))
      let status = try relay.run(takesTerminal: takesTerminal, signals: relayed)
      restore(before)
      return .ended(status)
    }
    try endWithParent(own)
    try check(setsid())
    try slave.becomeControllingTerminal()
    for stream in streams { try check(dup2(slave.raw, stream.raw)) }
    close(outer, master, ends.mine, prompts.mine)
    let child = try check(clx_fork())
    if child != 0 {
      close(prompts.theirs)
      TerminalKeeper(terminal: slave, relay: ends.theirs, child: child).run()
    }
    try check(setpgid(0, 0))
    if takesTerminal { try slave.setForeground(getpid()) }
    close(slave, ends.theirs)
    restore(before)
    let isTyping = streams.contains(FD(0)) && !isPassedOn
    if !isTyping { close(prompts.theirs) }
    // The keeper is the first of this session, and our parent.
    let parent = getsid(0)
    try endWithParent(parent)
    return .goesOn(
      TerminalProcesses(keeper: parent, copier: copier), prompts: isTyping ? prompts.theirs : nil)
  }

  /// Whether a program beside the app gets what that writes, and could show it while a question is there.
  private static var isPassedOn: Bool {
    [FD(1), FD(2)].contains { stream in
      guard let type = try? stream.status().type else { return false }
      return type == S_IFIFO || type == S_IFSOCK
    }
  }

  /// A change of user takes that away again.
  ///
  /// Corresponds to PR_SET_PDEATHSIG.
  static func endWithParent(_ parent: Int32) throws(Errno) {
    try check(clx_prctl(1, UInt(SIGKILL)))
    if getppid() != parent { raise(SIGKILL) }
  }

  static func block(_ signals: [Int32]) -> sigset_t {
    var before = sigset_t()
    var set = signals.signalSet
    sigprocmask(SIG_BLOCK, &set, &before)
    return before
  }

  static func restore(_ mask: sigset_t) {
    var mask = mask
    sigprocmask(SIG_SETMASK, &mask, nil)
  }

  private static func close(_ descriptors: FD...) {
    for descriptor in descriptors { _ = Glibc.close(descriptor.raw) }
  }
}

extension [Int32] {
  var signalSet: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in self { sigaddset(&set, signal) }
    return set
  }
}
