// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

// What people are asked, and by whom.
//
//  1. However many wait for the same decision, there is one prompt for it.
//  2. An agent is a connection to the control socket that has asked for something to do. Each prompt is given
//     to one agent of its user's; that of a command that has started the app comes first for this app. An
//     agent that goes has its prompts given to another one.
//  3. A prompt is over with its answer, when nobody waits for it any more, when there is no agent left, or
//     with the last view that waits for it. So there are no more of them than the views of a user pay for.
//     What is answered after that changes nothing.
//     When another process has served before, agents have some time to connect again.
//  4. A prompt that was closed without an answer is not shown again at once: an app could keep its user busy.

/// See the rules above.
final class Prompts: Sendable {
  private struct Agent {
    let user: UInt32
    /// The one app that it asks for; nil for all.
    let view: UInt64?

    func mayAsk(_ prompt: Prompt) -> Bool {
      prompt.key.user == user && view.map { prompt.views.contains($0) } ?? true
    }
  }

  private struct State {
    var last: Int64 = 0
    var lastAgent: UInt64 = 0
    /// In the order of their numbers.
    var prompts: [Prompt] = []
    var agents: [UInt64: Agent] = [:]
    /// Until when nobody is asked again.
    var quiet: [PromptKey: UInt64] = [:]
    /// Until when agents are expected that were there before.
    var expectsAgentsUntil: UInt64 = 0
  }

  private let state = Mutex(State())
  private let quietNanoseconds: UInt64
  private let now: @Sendable () -> UInt64

  init(quietSeconds: UInt64 = 10, now: @escaping @Sendable () -> UInt64) {
    quietNanoseconds = quietSeconds * 1_000_000_000
    self.now = now
  }

  // MARK: Who waits

  enum Addition: Equatable { case waits, nobodyAsks, isQuiet }

  /// Adds someone who waits for a decision.
  ///
  /// `waiter` is asked for only if somebody is there to be asked.
  func add(
    _ key: PromptKey, of view: UInt64, _ app: AgentApp, _ question: AgentTask.Question,
    _ waiter: () -> PromptWaiter?
  ) -> Addition {
    state.withLock { state in
      let known = state.prompts.firstIndex { $0.key == key }
      if known == nil, let until = state.quiet[key] {
        if now() < until { return .isQuiet }
        state.quiet[key] = nil
      }
      let hasAgent = state.agents.values.contains { $0.user == key.user && ($0.view ?? view) == view }
      guard hasAgent || now() < state.expectsAgentsUntil, let waiter = waiter() else { return .nobodyAsks }
      let index: Int
      if let known {
        index = known
      } else {
        state.last += 1
        state.prompts.append(Prompt(number: state.last, key: key, app: app, question: question))
        index = state.prompts.count - 1
      }
      state.prompts[index].views.insert(view)
      state.prompts[index].add(waiter)
      return .waits
    }
  }

  /// Takes away what waits for a decision that somebody has made otherwise.
  func take(_ key: PromptKey) -> Prompt? {
    state.withLock { state in
      state.quiet[key] = nil
      return state.prompts.firstIndex { $0.key == key }.map { state.prompts.remove(at: $0) }
    }
  }

  /// A view has ended: what only it waited for is asked no more.
  func forget(view: UInt64) {
    state.withLock { state in
      for index in state.prompts.indices { state.prompts[index].views.remove(view) }
      state.prompts.removeAll { $0.views.isEmpty }
      state.quiet = state.quiet.filter { $0.key.subject != .panel(view: view) }
    }
  }

  // MARK: Agents

  /// A new agent, by the number that it has until it leaves.
  func join(_ user: UInt32, view: UInt64?) -> UInt64 {
    state.withLock { state in
      state.lastAgent += 1
      state.agents[state.lastAgent] = Agent(user: user, view: view)
      return state.lastAgent
    }
  }

  /// Gives an agent something to ask, if there is something that nobody asks yet.
  func next(for number: UInt64) -> AgentTask? {
    state.withLock { state in
      guard let agent = state.agents[number] else { return nil }
      state.prompts.removeAll { prompt in prompt.waiters.allSatisfy(\.isGone) }
      let index = state.prompts.firstIndex { prompt in
        prompt.agent == nil && agent.mayAsk(prompt)
          && (agent.view != nil || !state.agents.values.contains { $0.view != nil && $0.mayAsk(prompt) })
      }
      guard let index else { return nil }
      state.prompts[index].agent = number
      return state.prompts[index].task
    }
  }

  /// What an agent has an answer to; nil if that is nothing any more, or never was.
  ///
  /// `isAnswer` says that it was not only closed.
  func answered(_ number: Int64, by agent: UInt64, isAnswer: Bool) -> Prompt? {
    state.withLock { state in
      guard
        let index = state.prompts.firstIndex(where: { $0.number == number && $0.agent == agent })
      else { return nil }
      let prompt = state.prompts.remove(at: index)
      if prompt.waiters.allSatisfy(\.isGone) { return nil }
      if !isAnswer {
        let now = now()
        state.quiet = state.quiet.filter { $0.value > now }
        state.quiet[prompt.key] = now &+ quietNanoseconds
      }
      return prompt
    }
  }

  /// An answer could not be carried out: the same agent may give another one, or the next, if it has gone
  /// meanwhile; gives what nobody is there to ask any more.
  func putBack(_ prompt: Prompt) -> [Prompt] {
    state.withLock { state in
      var prompt = prompt
      if let agent = prompt.agent, state.agents[agent] == nil { prompt.agent = nil }
      state.prompts.append(prompt)
      state.prompts = state.prompts.inOrder { $0.number < $1.number }
      return now() < state.expectsAgentsUntil ? [] : Self.takeUnasked(&state)
    }
  }

  /// An agent has gone; gives what nobody is there to ask any more.
  func leave(_ number: UInt64) -> [Prompt] {
    state.withLock { state in
      state.agents[number] = nil
      for index in state.prompts.indices where state.prompts[index].agent == number {
        state.prompts[index].agent = nil
      }
      return now() < state.expectsAgentsUntil ? [] : Self.takeUnasked(&state)
    }
  }

  /// For so long, what nobody is there to ask waits all the same.
  func expectAgents(nanoseconds: UInt64) {
    state.withLock { $0.expectsAgentsUntil = now() &+ nanoseconds }
  }

  /// Agents that were there before have had their time; gives what nobody is there to ask.
  func expectNoMoreAgents() -> [Prompt] {
    state.withLock { state in
      state.expectsAgentsUntil = 0
      return Self.takeUnasked(&state)
    }
  }

  private static func takeUnasked(_ state: inout State) -> [Prompt] {
    let agents = state.agents.values
    let unasked = state.prompts.filter { prompt in
      prompt.agent == nil && !agents.contains { $0.mayAsk(prompt) }
    }
    state.prompts.removeAll { prompt in unasked.contains { $0.number == prompt.number } }
    return unasked
  }

  /// How many prompts there are, and how many agents.
  var counts: (prompts: Int, agents: Int) { state.withLock { ($0.prompts.count, $0.agents.count) } }
}

/// An agent, or who reads for an app, for as long as its connection is there.
final class AgentPresence: Sendable {
  let number: UInt64
  let view: UInt64?
  /// Whether it asks nobody, and reads what its app wants to be told.
  let isReader: Bool
  /// Whether the app has ended that it is there for.
  let hasEnded: @Sendable () -> Bool
  private let left: @Sendable (UInt64) -> Void

  init(
    _ number: UInt64, view: UInt64?, isReader: Bool = false,
    hasEnded: @escaping @Sendable () -> Bool = { false }, left: @escaping @Sendable (UInt64) -> Void
  ) {
    self.hasEnded = hasEnded
    self.number = number
    self.view = view
    self.isReader = isReader
    self.left = left
  }

  deinit { left(number) }
}
