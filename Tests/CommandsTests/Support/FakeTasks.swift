// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization
internal import TestSupport

/// What a fake daemon has its agents ask, and what they have answered.
final class FakeTasks: Sendable {
  private struct State {
    var waiting: [AgentTask] = []
    var answers: [(number: Int64, answer: AgentAnswer)] = []
    var isOver = false
    /// What was decided meanwhile.
    var decided: [ConsentStatus] = []
  }

  private let state = Mutex(State())

  static let app = AgentApp(identifier: FakeDaemon.identifier, name: "Note", team: "ABCDE12345")

  static func consent(
    _ number: Int64, _ service: PrivacyService = .photos, text: String? = "Puts pictures into notes.",
    app: AgentApp = app
  ) -> AgentTask {
    AgentTask(number: number, app: app, question: .consent(service, text: text))
  }

  static func panel(_ number: Int64, _ request: PanelRequest) -> AgentTask {
    AgentTask(number: number, app: app, question: .panel(request))
  }

  init(_ tasks: AgentTask...) { state.withLock { $0.waiting = tasks } }

  func add(_ task: AgentTask) { state.withLock { $0.waiting.append(task) } }
  func decide(_ status: ConsentStatus) { state.withLock { $0.decided.append(status) } }
  func end() { state.withLock { $0.isOver = true } }

  var answers: [AgentAnswer] { state.withLock { $0.answers.map(\.answer) } }
  var numbers: [Int64] { state.withLock { $0.answers.map(\.number) } }

  /// Waits for so many answers.
  func answers(_ count: Int) -> [AgentAnswer] {
    _ = eventually { answers.count >= count }
    return answers
  }

  /// The daemon's part; `taking` says how it takes an answer.
  func answer(
    _ call: ControlCall, taking: @escaping @Sendable (Int64, AgentAnswer) -> ControlReply = { _, _ in .done }
  ) -> ControlAnswer? {
    switch call.request {
    case .nextTask: return .job(.queries) { [self] _ in next() }
    case .answerTask(let number, let answer):
      let reply = taking(number, answer)
      state.withLock { $0.answers.append((number, answer)) }
      return .reply(reply)
    case .consent(.list): return .reply(.consents(state.withLock { $0.decided }))
    default: return nil
    }
  }

  /// Waits until there is a task; at the end there is none ever.
  private func next() -> ControlReply {
    var task: AgentTask?
    _ = eventually {
      state.withLock { state in
        if !state.waiting.isEmpty { task = state.waiting.removeFirst() }
        return task != nil || state.isOver
      }
    }
    return task.map(ControlReply.task) ?? .failure(ControlFailure("that was all"))
  }
}

extension AgentQuestion {
  /// Of a task that is for a person.
  init(asking task: AgentTask) {
    guard let question = AgentQuestion(task) else { preconditionFailure("no person is asked that") }
    self = question
  }
}
