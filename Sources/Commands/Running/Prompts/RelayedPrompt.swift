// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO

/// A question of an app's at the person's terminal, while what the app shows waits.
struct RelayedPrompt {
  private var dialog: TerminalDialog
  /// Whether the terminal was an ordinary one before: how it was.
  let attributes: termios
  /// What was answered, until it is known what became of that.
  private var answer: AgentAnswer?

  init(_ question: AgentQuestion, tree: PanelTree?, columns: Int, attributes: termios) {
    dialog = TerminalDialog(question, tree: tree, columns: columns)
    self.attributes = attributes
  }

  /// Has the terminal show the question as it is, whatever the app has sent to it before.
  ///
  /// It could hide or swallow ours, and show one of its own in its place.
  private static let plain = [
    // The end of whatever is half sent.
    "\u{18}", "\u{1b}\\",
    // All of the screen is used, and shown at once; the cursor stays where it is.
    "\u{1b}7", "\u{1b}[?69l", "\u{1b}[r", "\u{1b}[?2026l", "\u{1b}8",
    // Letters are letters, in the terminal's own colours.
    "\u{f}", "\u{1b}%G", "\u{1b}(B", "\u{1b}[0m", "\u{1b}[4l",
    "\u{1b}]104\u{1b}\\", "\u{1b}]110\u{1b}\\", "\u{1b}]111\u{1b}\\",
    // Nothing of the app's stands beside or below it.
    "\u{1b}[J",
  ].joined()

  private var isPlain = false

  mutating func takeShown() -> [UInt8] {
    defer { isPlain = true }
    return Array(((isPlain ? "" : Self.plain) + dialog.takeShown()).utf8)
  }

  /// What is to be sent for what was typed; with ^C, the app gets that too.
  mutating func take(_ bytes: [UInt8]) -> (message: PromptMessage?, isInterrupted: Bool) {
    switch dialog.take(bytes) {
    case .goesOn: return (nil, false)
    case .answered(let answer): return (note(answer), false)
    case .interrupted: return (note(.dismiss), true)
    }
  }

  private mutating func note(_ answer: AgentAnswer) -> PromptMessage {
    self.answer = answer
    return .answer(dialog.question.number, answer)
  }

  /// False if the person is asked again.
  mutating func end(_ outcome: TerminalDialog.Outcome) -> Bool {
    guard let answer else { return true }
    self.answer = nil
    return dialog.end(outcome, of: answer)
  }

  mutating func takeBack() { dialog.takeBack() }

  /// After something else was shown.
  mutating func showAgain() {
    isPlain = false
    dialog.showAgain()
  }
}
