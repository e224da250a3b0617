// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// The agent at a terminal: one in memory, at which a shell runs it.
@Suite(.enabled(if: Program.isRoot, "becoming another user needs root"))
struct AgentTerminalTests {
  private static let talk = Repository.root + "/Tests/Fixtures/talk-at-a-terminal.py"

  /// What is typed at a shell, and what is to be seen after each; the agent runs already.
  private func talk(_ daemon: FakeDaemon, _ steps: [(typed: String, word: String)]) throws {
    let agent = "\(Program.insula) agent --terminal --store \(daemon.tree); echo over=$?"
    let all = [(agent, "questions appear here; \\^C ends")] + steps
    let result = try Program.run(
      [
        "timeout", "100", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3",
        Self.talk,
      ]
        + all.flatMap { [$0.0, $0.1] },
      environment: daemon.outside.merging(["HOME": daemon.temporary.path, "TERM": "xterm"]) { $1 })
    #expect(result.status == 0, "\(result.output)\(result.errors)")
  }

  @Test func questionsAreAskedOneAfterAnother() throws {
    let tasks = FakeTasks(
      FakeTasks.consent(1), FakeTasks.consent(2, .contacts, text: nil), FakeTasks.consent(3, .calendars))
    tasks.end()
    let daemon = try FakeDaemon { tasks.answer($0) }
    try talk(
      daemon,
      [
        ("", ".Note. wants to use your photos.\r\n  .com.example.note, signed by team ABCDE12345."),
        ("", "Allow\\? "), ("y", "Allowed[.]\r\n"), ("", "Note. wants to use your contacts[.]"),
        ("", "does not say why"), ("", "Allow\\? "), ("what", "Type 'y' or 'n'"), ("n", "Not allowed[.]\r\n"),
        ("", "Note. wants to use your calendars[.]"), ("", "Allow\\? "),
        ("^D", "Nothing was decided[.]\r\n.*that was all\r\nover=1"),
        // The terminal is as it was.
        ("stty -a | grep -c ' echo '", "[^0-9]1\r\n"),
      ])
    #expect(tasks.answers == [.allow, .deny, .dismiss] && tasks.numbers == [1, 2, 3])
  }

  @Test func interruptEndsTheAgent() throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    let daemon = try FakeDaemon { tasks.answer($0) }
    try talk(daemon, [("", "Allow"), ("^C", "\\^C\r\n"), ("stty -a | grep -c ' echo '", "[^0-9]1\r\n")])
    #expect(tasks.answers.isEmpty)
    tasks.end()
  }

  @Test func whatSomebodyElseDecidedIsTakenBack() throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    tasks.decide(
      ConsentStatus(identifier: FakeDaemon.identifier, user: 65534, service: .photos, state: .denied))
    tasks.end()
    let daemon = try FakeDaemon { call in
      tasks.answer(call) { _, _ in .failure(ControlFailure("settled", .ESTALE)) }
    }
    try talk(daemon, [("", "Never mind: somebody else has answered"), ("", "over=1")])
    #expect(tasks.answers == [.dismiss])
  }

  /// A daemon may say so itself: over the connection, and at any moment.
  @Test func daemonTakesBack() throws {
    let tasks = FakeTasks(FakeTasks.consent(1), FakeTasks.consent(2, .contacts))
    tasks.end()
    let daemon = try FakeDaemon { call in
      guard case .nextTask = call.request else { return tasks.answer(call) }
      let connection = call.connection
      let answer = tasks.answer(call)
      guard case .job(let queue, let job)? = answer else { return answer }
      return .job(queue) { reporter in
        let reply = job(reporter)
        if case .task(let task) = reply, task.number == 1 {
          // It goes out after the task.
          _ = try? JoinableThread(name: "takes-back") {
            usleep(500_000)
            _ = connection.send(.reply(.failure(ControlFailure("settled", .ESTALE))))
          }.detach()
        }
        return reply
      }
    }
    try talk(
      daemon, [("", "your photos(.|\r\n)*Never mind(.|\r\n)*your contacts"), ("", "Allow"), ("y", "Allowed")])
    #expect(tasks.answers(1) == [.allow] && tasks.numbers == [2])
  }

  @Test func anotherDaemonAsksAgain() throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    let daemon = try FakeDaemon { tasks.answer($0) }
    let replacing = try JoinableThread(name: "replaces") {
      _ = eventually { daemon.asked.contains(.nextTask(ofStarted: false)) }
      usleep(500_000)
      try? daemon.replace()
      tasks.add(FakeTasks.consent(1))
      tasks.end()
    }
    defer { replacing.join() }
    try talk(daemon, [("", "your photos(.|\r\n)*Never mind(.|\r\n)*Allow"), ("y", "Allowed(.|\r\n)*over=1")])
    #expect(tasks.answers == [.allow])
  }

  @Test func tooLateIsTold() throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    tasks.end()
    let daemon = try FakeDaemon { call in
      tasks.answer(call) { _, _ in .failure(ControlFailure("settled", .ESTALE)) }
    }
    try talk(daemon, [("", "Allow"), ("y", "Too late: somebody else(.|\r\n)*over=1")])
  }

  @Test func fileIsChosen() throws {
    let tasks = FakeTasks(FakeTasks.panel(1, PanelRequest(.file, types: [".txt"])))
    tasks.end()
    let daemon = try FakeDaemon { tasks.answer($0) }
    try daemon.temporary.makeDirectory("tree/Shared")
    try daemon.temporary.write("", to: "tree/Shared/Letter.txt")
    try daemon.temporary.write("", to: "tree/Shared/Letter.md")
    try talk(
      daemon,
      [
        ("", "asks you for a file"), ("", "File: "), ("/Shared/Letter.md", "must end in .txt"),
        ("/Sh\t\t", "The app gets Shared/Letter.txt[.](.|\r\n)*over=1"),
      ])
    let inode = UInt64(try FD.cwd.status(of: daemon.tree + "/Shared/Letter.txt").st_ino)
    #expect(tasks.answers == [.chosen(path: "Shared/Letter.txt", inode: inode)])
  }

  /// As much as a daemon can send.
  @Test func longTextsDoNotFillTheScreen() throws {
    let text = String(repeating: "\u{1b}]0;x\u{7} ", count: 8000)
    let tasks = FakeTasks(FakeTasks.consent(1, text: text))
    tasks.end()
    let daemon = try FakeDaemon { tasks.answer($0) }
    try talk(
      daemon, [("", "It says: .[?].0;x[?] [?]"), ("", "[.][.][.].\r\n"), ("", "Allow"), ("y", "Allowed")])
    #expect(tasks.answers(1) == [.allow])
  }

  @Test func withoutAnyoneToAskItSaysWhatToDo() throws {
    let tasks = FakeTasks()
    let daemon = try FakeDaemon { tasks.answer($0) }
    for words in [[], ["--terminal"]] {
      let result = try Program.run(
        [
          "setsid", "-w", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", Program.insula,
          "agent",
        ] + words
          + ["--store", daemon.tree],
        environment: daemon.outside.merging(["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"]) { $1 })
      #expect(result.status == 1 && result.output.isEmpty)
      #expect(result.errors.hasPrefix("insula: agent: there is nobody to ask: "), "\(result.errors)")
      #expect(result.errors.hasSuffix("'insula consent allow ID SERVICE' decides without asking\n"))
      #expect(result.errors.contains("there is no session bus") == words.isEmpty)
    }
    #expect(daemon.asked.isEmpty)
  }

  @Test func daemonThatCanNotEndsIt() throws {
    let daemon = try FakeDaemon { _ in nil }
    try talk(daemon, [("", "insula: this daemon asks nobody\r\nover=1")])
  }
}
