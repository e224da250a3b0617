// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO

// Questions of the app's for the person at the terminal. While one is there, the person types for it and not
// for the app, and what the app shows waits.

extension TerminalRelay {
  mutating func hearPrompts() {
    guard let prompts else { return }
    switch PromptMessage.receive(from: prompts) {
    case .ask(let question, let mountPoint, let user): ask(question, mountPoint: mountPoint, user: user)
    case .takenBack:
      prompt?.takeBack()
      endPrompt()
    case .outcome(let outcome):
      if prompt?.end(outcome) ?? true { endPrompt() } else { showPrompt() }
    case .answer: break
    case nil:
      prompt?.takeBack()
      closePrompts()
    }
  }

  private mutating func ask(_ question: AgentQuestion, mountPoint: String, user: UInt32) {
    // In the background the terminal is somebody else's.
    guard prompt == nil, !hasHungUp, outer.isInForeground,
      let before = attributes ?? (try? outer.terminalAttributes())
    else {
      if let prompts { PromptMessage.answer(question.number, .dismiss).send(to: prompts) }
      return
    }
    // What was typed before it is no answer: it is the app's, or nobody's.
    if attributes != nil, let bytes = Self.read(from: outer) {
      typed += bytes
      if let master { Self.write(&typed, to: master) }
    } else {
      tcflush(outer.raw, TCIFLUSH)
    }
    var tree: PanelTree?
    if case .panel = question.kind { tree = PanelTree(at: mountPoint, for: user) }
    try? outer.set(terminalAttributes: before.askingOnly)
    prompt = RelayedPrompt(
      question, tree: tree, word: word, size: outer.terminalSize, attributes: before)
    showPrompt()
  }

  mutating func take(answer bytes: [UInt8]) {
    guard let next = prompt?.take(bytes) else { return }
    showPrompt()
    if let message = next.message, let prompts { message.send(to: prompts) }
    guard next.isInterrupted else { return }
    // The person means the app, too.
    if attributes != nil, let master {
      typed.append(3)
      Self.write(&typed, to: master)
    } else {
      TerminalMessage.signalAll(SIGINT).send(to: keeping)
    }
  }

  /// Nothing is being typed; when that was so for a while, keys are answers.
  mutating func noteSilence() {
    guard prompt != nil else { return }
    prompt?.noteSilence(outer.terminalSize)
    showPrompt()
  }

  /// Whether another process asks at this terminal: what it shows must not be covered by what our app shows.
  ///
  /// That one is in the foreground.
  var isAskedByAnother: Bool {
    prompt == nil && !hasHungUp && !outer.isInForeground
      && (try? outer.terminalAttributes())?.isAskingOnly ?? false
  }

  /// Asks once more where the terminal was somebody else's meanwhile.
  mutating func askAgain() {
    guard let before = prompt?.attributes, outer.isInForeground else { return }
    try? outer.set(terminalAttributes: before.askingOnly)
    prompt?.showAgain(outer.terminalSize)
    showPrompt()
  }

  private mutating func showPrompt() {
    let text = prompt?.takeShown() ?? []
    shown += text
    Self.write(&shown, to: outer)
  }

  private mutating func endPrompt() {
    showPrompt()
    guard let before = prompt?.attributes else { return }
    prompt = nil
    guard outer.isInForeground else { return }
    try? outer.set(terminalAttributes: attributes?.passingEverything ?? before)
    // The screen of an app that fills it is to be shown anew.
    if attributes != nil { TerminalMessage.signalAll(SIGWINCH).send(to: keeping) }
  }

  mutating func closePrompts() {
    endPrompt()
    if let prompts { _ = close(prompts.raw) }
    prompts = nil
  }
}
