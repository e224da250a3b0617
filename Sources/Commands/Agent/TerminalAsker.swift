// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO

/// Asks at the terminal of this process, which is an ordinary one between questions.
final class TerminalAsker: Asker {
  private let terminal: OwnedFD
  private let tree: PanelTree?
  /// A word of the person's own choosing.
  private let word: String?
  private var dialog: TerminalDialog?
  /// How the terminal was before the question.
  private var attributes: termios?
  private var maskBefore = sigset_t()
  /// Signals that end us come here during a question, so that the terminal is given back before.
  private var arriving: OwnedFD?

  /// Nobody could let us go on where that does not stop us.
  private static let mostStops = 10
  private static let endings = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

  /// Nil without a terminal.
  init?(_ tree: PanelTree?, word: String?) {
    guard let terminal = try? FD.cwd.openFollowing("/dev/tty", O_RDWR | O_NOCTTY) else { return nil }
    self.terminal = terminal
    self.tree = tree
    self.word = word
  }

  deinit { leave() }

  /// The kernel tells by a signal that the terminal has gone.
  var events: FD? { nil }
  func look() {}

  func begin(_ question: AgentQuestion) throws(CommandFailure) {
    try enter()
    dialog = TerminalDialog(
      question, tree: tree, word: word, size: terminal.fd.terminalSize, at: monotonicNanoseconds())
    show()
  }

  func answer(_ watch: TaskWatch) throws(CommandFailure) -> AgentAnswer? {
    while var asked = dialog {
      let watched = [terminal.fd, arriving?.fd, watch.fd].compactMap { $0 }
      let wait = min(asked.wait(at: monotonicNanoseconds()) ?? TaskWatch.interval, TaskWatch.interval)
      guard let ready = try? waitForAny(of: watched, milliseconds: wait) else { throw gone }
      if !ready.contains(true), watch.isDecided() { return nil }
      if arriving != nil, ready[1] { end(by: nil) }
      if watch.fd != nil, ready.last == true { return nil }
      guard ready[0] else {
        asked.noteSilence(at: monotonicNanoseconds(), size: terminal.fd.terminalSize)
        dialog = asked
        show()
        continue
      }
      // The terminal's end reads as nothing.
      guard let bytes = (try? terminal.fd.readAvailable(limit: 1024)) ?? nil else { throw gone }
      let step = asked.take(bytes, at: monotonicNanoseconds())
      dialog = asked
      show()
      switch step {
      case .goesOn: break
      case .answered(let answer): return answer
      case .interrupted: end(by: SIGINT)
      }
    }
    return nil
  }

  func end(_ outcome: TerminalDialog.Outcome, of answer: AgentAnswer) -> Bool {
    guard var asked = dialog else { return true }
    let isOver = asked.end(outcome, of: answer)
    dialog = asked
    show()
    if isOver { leave() }
    return isOver
  }

  func takeBack() {
    dialog?.takeBack()
    show()
    leave()
  }

  // MARK: The terminal

  private var gone: CommandFailure { CommandFailure(.failed, "agent: the terminal has gone") }

  private func show() {
    guard let text = dialog?.takeShown(), !text.isEmpty else { return }
    try? terminal.fd.writeAll(text.utf8)
  }

  /// In the background we stop here until we have the terminal, as whoever wants something of it does.
  private func enter() throws(CommandFailure) {
    guard attributes == nil else { return }
    var set = Self.endings.signalSet
    for _ in 0..<Self.mostStops where !terminal.fd.isInForeground { raise(SIGTTOU) }
    guard terminal.fd.isInForeground else { throw gone }
    do throws(Errno) {
      let before = try terminal.fd.terminalAttributes()
      arriving = OwnedFD(owning: try check(signalfd(-1, &set, Int32(SFD_CLOEXEC))))
      sigprocmask(SIG_BLOCK, &set, &maskBefore)
      try terminal.fd.set(terminalAttributes: before.askingOnly)
      attributes = before
      // What was typed before the question is no answer to it.
      tcflush(terminal.fd.raw, TCIFLUSH)
    } catch {
      leave()
      throw gone
    }
  }

  private func leave() {
    dialog = nil
    if let attributes, terminal.fd.isInForeground { try? terminal.fd.set(terminalAttributes: attributes) }
    attributes = nil
    guard arriving != nil else { return }
    arriving = nil
    // One that has arrived ends us here.
    sigprocmask(SIG_SETMASK, &maskBefore, nil)
  }

  /// Ends us by a signal: one that has arrived, or this one.
  private func end(by number: Int32?) {
    if let number { raise(number) }
    leave()
  }
}
