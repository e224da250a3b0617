// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Foundation
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// The agent on a desktop: a session bus of the test's own, with dialogs that nobody sees.
@Suite(.enabled(if: Program.isRoot, "becoming another user needs root"))
struct AgentDesktopTests {
  private static let desktop = Repository.root + "/Tests/Fixtures/desktop.py"

  /// Runs the agent where a person does that; it ends when there are no more tasks.
  private func run(
    access: String = "absent", files: String = "absent", _ tasks: FakeTasks, _ daemon: FakeDaemon,
    ending: Bool = true
  ) throws -> ProgramResult {
    if ending { tasks.end() }
    return try run(on: [Self.desktop, access, files], daemon)
  }

  /// The desktop is a program of Python's.
  private func run(on desktop: [String], _ daemon: FakeDaemon) throws -> ProgramResult {
    let buses = daemon.temporary.appending("buses")
    if !FD.cwd.has(buses) { try daemon.temporary.makeDirectory("buses", mode: 0o777) }
    return try Program.run(
      [
        "timeout", "100", "setsid", "-w", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
        "/usr/bin/python3",
      ] + desktop + [Program.insula, "agent", "--store", daemon.tree],
      environment: daemon.outside.merging(["TMPDIR": buses, "HOME": daemon.temporary.path]) { $1 })
  }

  @Test(
    arguments: [("0", AgentAnswer.allow), ("1", .deny), ("2", .dismiss), ("77", .dismiss)])
  func dialogIsAnswered(response: String, answer: AgentAnswer) throws {
    let tasks = FakeTasks(FakeTasks.consent(1, text: "Puts <b>pictures</b> into \"notes\"."))
    let daemon = try FakeDaemon { tasks.answer($0) }
    let result = try run(access: response, tasks, daemon)
    #expect(tasks.answers == [answer], "\(result)")
    #expect(result.errors.hasSuffix("insula: that was all\n"), "\(result)")
    let fields = result.output.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
    try #require(fields.count == 8, "\(result)")
    #expect(fields[1].hasPrefix("/org/freedesktop/portal/desktop/request/insula/"))
    #expect(fields[2] == FakeDaemon.identifier && fields[3].isEmpty)
    #expect(fields[4] == "Allow \"Note\" to use your photos?")
    #expect(fields[5] == "com.example.note, signed by team ABCDE12345")
    #expect(fields[6] == "It says: \"Puts \u{2039}b\u{203a}pictures\u{2039}/b\u{203a} into 'notes'.\"")
    #expect(fields[7] == "deny_label=Don't Allow; grant_label=Allow; icon=dialog-question; modal=True\n")
  }

  /// Beside the desktop that is made here, one by others: python-dbusmock.
  @Test(arguments: [0, 1, 2])
  func mockedPortalIsAnswered(response: Int) throws {
    let tasks = FakeTasks(
      FakeTasks.consent(1), FakeTasks.panel(2, PanelRequest(.file, types: [".txt"])),
      FakeTasks.panel(3, PanelRequest(.folder)))
    let daemon = try FakeDaemon { tasks.answer($0) }
    tasks.end()
    try tree(daemon)
    let portal = Repository.root + "/Tests/Fixtures/mocked-portal.py"
    let result = try run(on: [portal, "\(response)", "file://\(daemon.tree)/Shared"], daemon)
    let inode = UInt64(try FD.cwd.status(of: daemon.tree + "/Shared").st_ino)
    let chosen: AgentAnswer = response == 0 ? .chosen(path: "Shared", inode: inode) : .dismiss
    let consent: AgentAnswer = [.allow, .deny, .dismiss][response]
    // A folder is no file.
    #expect(tasks.answers == [consent, .dismiss, chosen], "\(result)")
    #expect(result.errors.hasSuffix("insula: that was all\n"), "\(result)")
    for call in ["AccessDialog \"/org/", "OpenFile \"\" \"", "\"handle_token\": "] {
      #expect(result.output.contains(call), "\(result)")
    }
  }

  @Test func questionsAreAskedOneAfterAnother() throws {
    let tasks = FakeTasks(FakeTasks.consent(1), FakeTasks.consent(2, .contacts))
    let daemon = try FakeDaemon { tasks.answer($0) }
    let result = try run(access: "0", tasks, daemon)
    #expect(tasks.answers == [.allow, .allow] && tasks.numbers == [1, 2], "\(result)")
  }

  /// What could not be shown is no refusal.
  @Test(arguments: [
    ("none", "This desktop has no dialog for that."), ("dies", "The dialog was not answered: "),
  ])
  func dialogThatIsNotShownDecidesNothing(access: String, why: String) throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    let daemon = try FakeDaemon { tasks.answer($0) }
    let result = try run(access: access, tasks, daemon)
    #expect(tasks.answers == [.dismiss], "\(result)")
    #expect(result.errors.contains("agent: \"Note\" wants to use your photos. \(why)"), "\(result)")
    #expect(result.errors.contains("('insula consent allow com.example.note photos' settles it)"))
  }

  @Test func dialogIsClosedWhenSomebodyElseHasDecided() throws {
    let tasks = FakeTasks(FakeTasks.consent(1))
    tasks.decide(
      ConsentStatus(identifier: FakeDaemon.identifier, user: 65534, service: .photos, state: .authorized))
    let daemon = try FakeDaemon { tasks.answer($0) }
    let result = try run(access: "waits", tasks, daemon)
    #expect(result.output.contains("\nclosed\n"), "\(result)")
    #expect(tasks.answers == [.dismiss])
  }

  /// Where nobody is left to ask, somebody else may have the question.
  @Test(arguments: ["logout", "leaves"])
  func agentEndsWithTheSession(access: String) throws {
    let tasks = access == "logout" ? FakeTasks(FakeTasks.consent(1)) : FakeTasks()
    let daemon = try FakeDaemon { tasks.answer($0) }
    let result = try run(access: access, tasks, daemon, ending: false)
    tasks.end()
    #expect(result.status == 1 && tasks.answers.isEmpty, "\(result)")
    #expect(result.errors.hasSuffix("insula: agent: the session bus has gone\n"), "\(result)")
  }

  // MARK: Files

  private func tree(_ daemon: FakeDaemon) throws {
    try daemon.temporary.makeDirectory("tree/Shared", mode: 0o777)
    try daemon.temporary.write("", to: "tree/Shared/My Letter.txt")
    try daemon.temporary.write("", to: "outside.txt")
  }

  @Test func fileIsChosen() throws {
    let tasks = FakeTasks(FakeTasks.panel(1, PanelRequest(.file, types: [".txt", "public.png"])))
    let daemon = try FakeDaemon { tasks.answer($0) }
    try tree(daemon)
    let result = try run(files: "0=file://\(daemon.tree)/Shared/My%20Letter.txt", tasks, daemon)
    let inode = UInt64(try FD.cwd.status(of: daemon.tree + "/Shared/My Letter.txt").st_ino)
    #expect(tasks.answers == [.chosen(path: "Shared/My Letter.txt", inode: inode)], "\(result)")
    #expect(
      result.output == """
        open||"Note" asks you for a file. (com.example.note, signed by team ABCDE12345)|accept_label=Choose; \
        current_folder=\(daemon.tree)/\u{0}; filters=[('.txt, .png', [(0, '*.[tT][xX][tT]'), \
        (0, '*.[pP][nN][gG]')])]; modal=True

        """)
  }

  @Test func folderAndPlaceToSaveAreChosen() throws {
    let tasks = FakeTasks(FakeTasks.panel(1, PanelRequest(.folder)))
    let daemon = try FakeDaemon { tasks.answer($0) }
    try tree(daemon)
    let folder = try run(files: "0=file://\(daemon.tree)/Shared", tasks, daemon)
    #expect(folder.output.contains("directory=True"), "\(folder)")
    tasks.add(FakeTasks.panel(2, PanelRequest(.save, name: "New.txt")))
    let save = try run(files: "0=file://\(daemon.tree)/Shared/New.txt", tasks, daemon)
    #expect(save.output.hasPrefix("save|") && save.output.contains("current_name=New.txt"), "\(save)")
    let inode = UInt64(try FD.cwd.status(of: daemon.tree + "/Shared/New.txt").st_ino)
    #expect(tasks.answers.last == .chosen(path: "Shared/New.txt", inode: inode))
    guard case .chosen(path: "Shared", _)? = tasks.answers.first else {
      Issue.record("\(tasks.answers)")
      return
    }
  }

  @Test(
    arguments: [
      ("1", ""), ("2", ""), ("0", "not a file of this machine"), ("0=https://example.com/x", "not a file of"),
      ("0=file:///etc/%00passwd", "not a file of"),
      ("0=file:///etc/passwd", "'/etc/passwd' is not in the tree at"),
      ("0=file://OUTSIDE", "is not in the tree at"), ("none", "The dialog could not be shown"),
      ("dies", "xdg-desktop-portal has ended"),
    ])
  func whatIsNotInTheTreeIsNotChosen(files: String, why: String) throws {
    let tasks = FakeTasks(FakeTasks.panel(1, PanelRequest(.file)))
    let daemon = try FakeDaemon { tasks.answer($0) }
    try tree(daemon)
    let outside = daemon.temporary.appending("outside.txt")
    let result = try run(files: files.replacing("OUTSIDE", with: outside), tasks, daemon)
    #expect(tasks.answers == [.dismiss], "\(result)")
    #expect(
      why.isEmpty ? !result.errors.contains("agent:") : result.errors.contains(why), "\(result)")
  }

  /// What the daemon does not grant is no reason to ask for ever.
  @Test func refusedChoiceIsTold() throws {
    let tasks = FakeTasks(FakeTasks.panel(1, PanelRequest(.save, name: "New.txt")))
    let daemon = try FakeDaemon { call in
      tasks.answer(call) { _, answer in
        answer == .dismiss ? .done : .failure(ControlFailure("nobody may grant that", .EPERM))
      }
    }
    try tree(daemon)
    let result = try run(files: "0=file://\(daemon.tree)/Shared/New.txt", tasks, daemon)
    #expect(tasks.answers.count == 2 && tasks.answers.last == .dismiss, "\(result)")
    #expect(result.errors.contains("nobody may grant that"))
    #expect(!FD.cwd.has(daemon.tree + "/Shared/New.txt"))
  }

  /// Without the library, it says what is missing.
  @Test func libraryMayBeMissing() throws {
    let tasks = FakeTasks()
    let daemon = try FakeDaemon { tasks.answer($0) }
    try daemon.temporary.makeDirectory("lib")
    try daemon.temporary.write("", to: "lib/libsystemd.so.0")
    let result = try Program.run(
      [
        "setsid", "-w", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env",
        "LD_LIBRARY_PATH=\(daemon.temporary.appending("lib"))", Program.insula, "agent", "--store",
        daemon.tree,
      ], environment: daemon.outside)
    #expect(result.status == 1, "\(result)")
    #expect(result.errors.contains("libsystemd can't be loaded (") && result.errors.contains("too short"))
    #expect(result.errors.contains("install libsystemd (on Debian the package libsystemd0)"))
  }
}
