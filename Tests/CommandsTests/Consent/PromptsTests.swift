// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Policy
internal import Store
internal import Synchronization
internal import Testing

/// Which prompt goes to which agent, and when it is over.
struct PromptsTests {
  private final class Clock: Sendable {
    let time = Atomic<UInt64>(1)
    func pass(seconds: UInt64) { time.wrappingAdd(seconds * 1_000_000_000, ordering: .relaxed) }
  }

  private let clock = Clock()
  private let prompts: Prompts

  init() {
    prompts = Prompts(quietSeconds: 10) { [clock] in clock.time.load(ordering: .relaxed) }
  }

  private func key(
    _ service: PrivacyService = .photos, user: UInt32 = 1000, team: String = "TEAM"
  ) -> PromptKey {
    PromptKey(
      user: user, identifier: "org.example.player", team: Team(team, root: nil), subject: .service(service))
  }

  /// Somebody waits for as long as the call is there.
  private func add(_ key: PromptKey, view: UInt64 = 1, _ call: PromptCall) -> Prompts.Addition {
    let app = AgentApp(identifier: key.identifier, name: "Player", team: key.team.text)
    return prompts.add(key, of: view, app, .consent(.photos, text: nil)) {
      .call(PromptWaiter.WeakCall(call: call))
    }
  }

  @Test func withoutAnAgentNobodyWaits() {
    #expect(add(key(), PromptCall()) == .nobodyAsks)
    _ = prompts.join(1001, view: nil)
    #expect(add(key(), PromptCall()) == .nobodyAsks)
    _ = prompts.join(1000, view: 2)
    #expect(add(key(), PromptCall()) == .nobodyAsks)
    #expect(add(key(), view: 2, PromptCall()) == .waits)
  }

  @Test func allWaitForOnePrompt() throws {
    let agent = prompts.join(1000, view: nil)
    let calls = (0..<100).map { _ in PromptCall() }
    for call in calls { #expect(add(key(), call) == .waits) }
    let task = try #require(prompts.next(for: agent))
    #expect(prompts.next(for: agent) == nil)
    #expect(prompts.answered(task.number, by: agent + 1, isAnswer: true) == nil)
    #expect(prompts.answered(task.number + 1, by: agent, isAnswer: true) == nil)
    #expect(prompts.answered(task.number, by: agent, isAnswer: true)?.waiters.count == 100)
    #expect(prompts.answered(task.number, by: agent, isAnswer: true) == nil)
    withExtendedLifetime(calls) {}
  }

  /// The command that has started the app asks for it, and else another agent of the user.
  @Test func nearestAgentAsks() throws {
    let (call, other) = (PromptCall(), PromptCall())
    let general = prompts.join(1000, view: nil)
    let started = prompts.join(1000, view: 7)
    #expect(add(key(), view: 7, call) == .waits)
    #expect(add(key(.contacts), view: 8, other) == .waits)
    #expect(prompts.next(for: general)?.number == 2)
    #expect(prompts.next(for: general) == nil)
    #expect(prompts.next(for: started)?.number == 1)
    #expect(prompts.leave(started).isEmpty)
    #expect(prompts.next(for: general)?.number == 1)
    #expect(prompts.leave(general).map(\.number) == [1, 2])
    withExtendedLifetime((call, other)) {}
  }

  @Test func nobodyIsAskedForThoseWhoHaveGone() {
    let agent = prompts.join(1000, view: nil)
    #expect(add(key(), PromptCall()) == .waits)
    #expect(prompts.next(for: agent) == nil)
    #expect(prompts.counts.prompts == 0)
  }

  /// Whoever keeps its agent from answering, and starts and ends apps, has no more prompts than views.
  @Test func promptsGoWithTheLastViewThatWaits() throws {
    let agent = prompts.join(1000, view: nil)
    let call = PromptCall()
    #expect(add(key(), view: 1, call) == .waits)
    #expect(add(key(), view: 2, call) == .waits)
    #expect(add(key(.contacts), view: 3, call) == .waits)
    let task = try #require(prompts.next(for: agent))
    prompts.forget(view: 3)
    #expect(prompts.counts.prompts == 1)
    prompts.forget(view: 1)
    #expect(prompts.counts.prompts == 1)
    prompts.forget(view: 2)
    #expect(prompts.counts.prompts == 0)
    #expect(prompts.answered(task.number, by: agent, isAnswer: true) == nil)
    withExtendedLifetime(call) {}
  }

  /// An app that asks and goes all the time, while its user thinks, takes no memory with that.
  @Test func thoseWhoHaveGoneAreForgotten() throws {
    let agent = prompts.join(1000, view: nil)
    let calls = (0..<100).map { _ in PromptCall() }
    for call in calls { #expect(add(key(), call) == .waits) }
    let task = try #require(prompts.next(for: agent))
    for _ in 0..<100_000 { #expect(add(key(), PromptCall()) == .waits) }
    let waiters = try #require(prompts.answered(task.number, by: agent, isAnswer: true)).waiters
    #expect(waiters.count < 500 && waiters.filter { !$0.isGone }.count == 100, "\(waiters.count)")
    withExtendedLifetime(calls) {}
  }

  /// A question about one team's app, whose app has ended, is none about another team's of its identifier.
  @Test func otherTeamsWaitForTheirOwnPrompt() throws {
    let agent = prompts.join(1000, view: nil)
    var first: PromptCall? = PromptCall()
    #expect(add(key(), try #require(first)) == .waits)
    let task = try #require(prompts.next(for: agent))
    first = nil
    let second = PromptCall()
    #expect(add(key(team: "OTHER"), view: 2, second) == .waits)
    #expect(prompts.answered(task.number, by: agent, isAnswer: true) == nil)
    #expect(prompts.next(for: agent)?.app.team == "OTHER")
    withExtendedLifetime(second) {}
  }

  /// What can't be done as it was answered is asked by the next agent, if the one that has answered has gone.
  @Test func answersThatFailLeaveNobodyWaiting() throws {
    let (first, second) = (prompts.join(1000, view: nil), prompts.join(1000, view: nil))
    let call = PromptCall()
    #expect(add(key(), call) == .waits)
    for agent in [first, second] {
      let number = try #require(prompts.next(for: agent)?.number)
      let prompt = try #require(prompts.answered(number, by: agent, isAnswer: true))
      #expect(prompts.putBack(prompt).isEmpty)
      #expect(prompts.next(for: second) == nil)
      let again = try #require(prompts.answered(number, by: agent, isAnswer: true))
      #expect(prompts.leave(agent).isEmpty)
      #expect(prompts.putBack(again).map(\.number) == (agent == first ? [] : [number]))
    }
    withExtendedLifetime(call) {}
  }

  @Test func closedPromptsStayClosedForAWhile() throws {
    let agent = prompts.join(1000, view: nil)
    let call = PromptCall()
    #expect(add(key(), call) == .waits)
    let task = try #require(prompts.next(for: agent))
    #expect(prompts.answered(task.number, by: agent, isAnswer: false) != nil)
    #expect(add(key(), call) == .isQuiet)
    #expect(add(key(.contacts), call) == .waits)
    clock.pass(seconds: 11)
    #expect(add(key(), call) == .waits)
  }

  @Test func agentsAreExpectedAfterATakeover() {
    let call = PromptCall()
    prompts.expectAgents(nanoseconds: 5_000_000_000)
    #expect(add(key(), call) == .waits)
    #expect(prompts.leave(3).isEmpty)
    #expect(prompts.expectNoMoreAgents().count == 1)
    #expect(add(key(), call) == .nobodyAsks)
  }
}
