// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// `insula run` as the agent of its app, between a daemon and the process that keeps the terminal.
@Suite struct RunAgentTests {
  private final class Run {
    let agent: RunAgent
    let terminal: OwnedFD
    private let theirs: OwnedFD

    init(_ daemon: FakeDaemon) throws {
      let directory = try TemporaryDirectory.open(daemon.temporary.appending("insula"))
      let address = try ControlClient(in: directory.fd, name: "fake.sock").address()
      let ends = try Pairs.messages()
      terminal = OwnedFD(owning: ends.mine.raw)
      theirs = OwnedFD(owning: ends.theirs.raw)
      agent = RunAgent(
        AgentConversation(address, user: 501, .nextTask(ofStarted: true)), terminal: theirs.fd,
        mountPoint: "/tree", user: 501)
      agent.begin()
    }

    /// As the loop that waits for the app, until the terminal has something to do; nil if nothing comes.
    func next(milliseconds: Int32 = patience) throws -> PromptMessage? {
      let end = monotonicNanoseconds() + UInt64(milliseconds) * 1_000_000
      while monotonicNanoseconds() < end {
        if try terminal.fd.waitUntilReadable(milliseconds: 0) {
          return PromptMessage.receive(from: terminal.fd)
        }
        let watched = agent.watched
        if watched.isEmpty { return nil }
        let wait = agent.patience < 0 ? 50 : min(50, agent.patience)
        let ready = try waitForAny(of: watched, milliseconds: wait)
        if ready.contains(true) || agent.patience > 0 { agent.look(ready) }
      }
      return nil
    }

    func question() throws -> AgentQuestion? {
      if case .ask(let question, "/tree", 501)? = try next() { question } else { nil }
    }

    func outcome() throws -> TerminalDialog.Outcome? {
      if case .outcome(let outcome)? = try next() { outcome } else { nil }
    }
  }

  @Test func questionsGoToTheTerminalAndAnswersToTheDaemon() throws {
    let tasks = FakeTasks(FakeTasks.consent(1), FakeTasks.panel(2, PanelRequest(.folder)))
    defer { tasks.end() }
    let daemon = try FakeDaemon { tasks.answer($0) }
    let run = try Run(daemon)
    #expect(try run.question() == AgentQuestion(FakeTasks.consent(1)))
    PromptMessage.answer(1, .deny).send(to: run.terminal.fd)
    #expect(try run.outcome() == .taken)
    #expect(try run.question() == AgentQuestion(FakeTasks.panel(2, PanelRequest(.folder))))
    PromptMessage.answer(2, .chosen(path: "Shared", inode: 7)).send(to: run.terminal.fd)
    #expect(try run.outcome() == .taken)
    #expect(tasks.answers == [.deny, .chosen(path: "Shared", inode: 7)] && tasks.numbers == [1, 2])
    #expect(daemon.asked.first == .nextTask(ofStarted: true))
  }

  @Test func answerToAnotherQuestionIsNone() throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    defer { tasks.end() }
    let daemon = try FakeDaemon { tasks.answer($0) }
    let run = try Run(daemon)
    _ = try run.question()
    PromptMessage.answer(7, .allow).send(to: run.terminal.fd)
    #expect(try run.next(milliseconds: 300) == nil && tasks.answers.isEmpty)
  }

  @Test func whatSomebodyElseDecidedIsTakenBack() throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    defer { tasks.end() }
    let daemon = try FakeDaemon { tasks.answer($0) }
    let run = try Run(daemon)
    _ = try run.question()
    tasks.decide(
      ConsentStatus(identifier: FakeDaemon.identifier, user: 501, service: .photos, state: .denied))
    // The loop looks when the time is over.
    run.agent.look([false, false])
    guard case .takenBack? = try run.next() else {
      Issue.record("not taken back")
      return
    }
    #expect(tasks.answers == [.dismiss])
  }

  /// A folder that may not be granted is asked for again, and consent is not.
  @Test func refusedChoiceIsAskedForAgain() throws {
    let tasks = FakeTasks(FakeTasks.panel(1, PanelRequest(.folder)), FakeTasks.consent(2))
    defer { tasks.end() }
    let daemon = try FakeDaemon { call in
      tasks.answer(call) { number, answer in
        answer == .chosen(path: "Shared", inode: 7) ? .done : .failure(ControlFailure("not that", .EPERM))
      }
    }
    let run = try Run(daemon)
    _ = try run.question()
    PromptMessage.answer(1, .chosen(path: "System", inode: 3)).send(to: run.terminal.fd)
    #expect(try run.outcome() == .refused("not that"))
    PromptMessage.answer(1, .chosen(path: "Shared", inode: 7)).send(to: run.terminal.fd)
    #expect(try run.outcome() == .taken)
    #expect(try run.question()?.number == 2)
    PromptMessage.answer(2, .allow).send(to: run.terminal.fd)
    #expect(try run.outcome() == .refused("not that"))
    #expect(tasks.numbers == [1, 1, 2])
  }

  @Test func daemonWithoutConsentIsAskedOnce() throws {
    let daemon = try FakeDaemon { _ in nil }
    let run = try Run(daemon)
    #expect(try run.next() == nil)
    #expect(run.agent.watched.isEmpty && run.agent.patience == -1)
    #expect(daemon.asked == [.nextTask(ofStarted: true)])
  }

  @Test func anotherDaemonAsksAgain() throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    defer { tasks.end() }
    let daemon = try FakeDaemon { tasks.answer($0) }
    let run = try Run(daemon)
    _ = try run.question()
    try daemon.replace()
    tasks.add(FakeTasks.consent(2))
    #expect(try run.next() == .takenBack)
    #expect(try run.question()?.number == 2)
    PromptMessage.answer(2, .allow).send(to: run.terminal.fd)
    #expect(try run.outcome() == .taken)
    #expect(tasks.numbers == [2])
  }

  @Test func terminalThatHasGoneEndsIt() throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    defer { tasks.end() }
    let daemon = try FakeDaemon { tasks.answer($0) }
    let run = try Run(daemon)
    _ = try run.question()
    shutdown(run.terminal.fd.raw, Int32(SHUT_RDWR))
    let isOver = try eventually {
      run.agent.look(try waitForAny(of: run.agent.watched, milliseconds: 50))
      return run.agent.watched.isEmpty
    }
    #expect(isOver && tasks.answers.isEmpty)
  }

  /// What comes through the socket is checked as everything else.
  @Test func messagesSurviveAndGarbageDoesNot() throws {
    let ends = try Pairs.messages()
    let mine = OwnedFD(owning: ends.mine.raw)
    let theirs = OwnedFD(owning: ends.theirs.raw)
    let hostile = String(repeating: "\u{1b}\u{1f469}", count: 100_000)
    let app = AgentApp(identifier: hostile, name: hostile, team: hostile)
    let types = (0..<1000).map { _ in hostile }
    for task in [
      FakeTasks.consent(1, text: hostile, app: app),
      AgentTask(number: 2, app: app, question: .panel(PanelRequest(.save, name: hostile, types: types))),
    ] {
      let question = try #require(AgentQuestion(task))
      #expect(PromptMessage.ask(question, mountPoint: "/x", user: 1).send(to: mine.fd))
      guard case .ask(question, "/x", 1)? = PromptMessage.receive(from: theirs.fd) else {
        Issue.record("it did not arrive")
        return
      }
    }
    for garbage in ["", "{}", "[", "{\"answer\":{}}", "\u{0}"] {
      _ = send(mine.fd.raw, garbage, garbage.utf8.count, 0)
      if !garbage.isEmpty { #expect(PromptMessage.receive(from: theirs.fd) == nil) }
    }
  }
}
