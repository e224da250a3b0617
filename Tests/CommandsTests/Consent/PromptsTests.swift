// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Daemon
internal import Policy
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

  private func key(_ service: PrivacyService = .photos, user: UInt32 = 1000) -> PromptKey {
    PromptKey(user: user, identifier: "org.example.player", subject: .service(service))
  }

  /// Somebody waits for as long as the call is there.
  private func add(_ key: PromptKey, view: UInt64 = 1, _ call: PromptCall) -> Prompts.Addition {
    let app = AgentApp(identifier: key.identifier, name: "Player", team: "TEAM")
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
