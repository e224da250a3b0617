// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO

/// Has the person at the terminal of `insula run` asked what its app wants to know.
///
/// Nothing in it waits, but for a daemon that is about to answer: the app is waited for beside it.
final class RunAgent {
  private let conversation: AgentConversation
  /// The process that keeps the terminal.
  private let terminal: FD
  private let mountPoint: String
  private let user: UInt32
  private var question: AgentQuestion?
  private var watch: TaskWatch?
  private var failures = 0
  private var isOver = false

  /// A daemon that is being replaced is there again at once: its socket waits for the next one.
  private static let attempts = 10

  /// `terminal` belongs to this process for as long as it lives.
  init(_ conversation: AgentConversation, terminal: FD, mountPoint: String, user: UInt32) {
    self.conversation = conversation
    self.terminal = terminal
    self.mountPoint = mountPoint
    self.user = user
  }

  /// What has something to read when ``look(_:)`` is to be called.
  var watched: [FD] { isOver ? [] : [conversation.fd, terminal].compactMap { $0 } }

  /// After so many milliseconds, too.
  var patience: Int32 { question == nil || isOver ? -1 : TaskWatch.interval }

  /// Begins; the app runs by then.
  func begin() { goOn() }

  private func goOn() {
    while !isOver, failures <= Self.attempts {
      do throws(Errno) { return try conversation.goOn() } catch { failures += 1 }
    }
    end()
  }

  private func end() {
    isOver = true
    conversation.close()
  }

  /// Does what there is to do, by which of the watched descriptors can be read.
  func look(_ ready: [Bool]) {
    guard !isOver else { return }
    guard ready.contains(true) else {
      if watch?.isDecided() == true, let question {
        _ = try? conversation.answer(question.number, .dismiss)
        takeBack()
      }
      return
    }
    if ready.count > 1, ready[0] { hearDaemon() }
    if ready.last == true, !isOver { hearTerminal() }
  }

  private func hearDaemon() {
    do throws(Errno) {
      switch try conversation.take() {
      case .task(let task): if let question = AgentQuestion(task) { ask(question) } else { goOn() }
      case .takenBack: takeBack()
      case .refused: end()
      case .nothing: break
      }
    } catch {
      failures += 1
      takeBack()
    }
  }

  private func ask(_ question: AgentQuestion) {
    failures = 0
    self.question = question
    watch = conversation.watch(question)
    if !PromptMessage.ask(question, mountPoint: mountPoint, user: user).send(to: terminal) { end() }
  }

  /// Nothing is asked any more.
  private func takeBack() {
    if question != nil { PromptMessage.takenBack.send(to: terminal) }
    (question, watch) = (nil, nil)
    goOn()
  }

  private func hearTerminal() {
    guard case .answer(let number, let answer)? = PromptMessage.receive(from: terminal) else { return end() }
    // What was taken back meanwhile is no answer to the next question.
    guard let question, number == question.number else { return }
    do throws(Errno) {
      let outcome = try conversation.answer(number, answer)
      PromptMessage.outcome(outcome).send(to: terminal)
      if case .refused = outcome, case .panel = question.kind, answer != .dismiss { return }
      (self.question, watch) = (nil, nil)
      goOn()
    } catch {
      failures += 1
      PromptMessage.outcome(.tooLate).send(to: terminal)
      (self.question, watch) = (nil, nil)
      goOn()
    }
  }
}
