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

  init(_ question: AgentQuestion, tree: PanelTree?, word: String?, size: TerminalSize, attributes: termios) {
    dialog = TerminalDialog(question, tree: tree, word: word, size: size, at: monotonicNanoseconds())
    self.attributes = attributes
  }

  mutating func takeShown() -> [UInt8] { Array(dialog.takeShown().utf8) }

  /// Milliseconds after which to look whether something is typed; nil if that does not matter.
  var wait: Int32? { dialog.wait(at: monotonicNanoseconds()) }

  /// Nothing is being typed at this moment.
  mutating func noteSilence(_ size: TerminalSize) {
    dialog.noteSilence(at: monotonicNanoseconds(), size: size)
  }

  /// What is to be sent for what was typed; with ^C, the app gets that too.
  mutating func take(_ bytes: [UInt8]) -> (message: PromptMessage?, isInterrupted: Bool) {
    switch dialog.take(bytes, at: monotonicNanoseconds()) {
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
  mutating func showAgain(_ size: TerminalSize) { dialog.showAgain(at: monotonicNanoseconds(), size: size) }
}
