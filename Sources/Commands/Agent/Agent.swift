// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula agent`.
struct AgentCommand: Command {
  static let description = CommandDescription(
    name: "agent", summary: "Asks you when apps want to use what is private, or want you to choose a file.",
    options: [
      .init(name: "terminal", help: "ask at this terminal, even where there is a desktop"),
      AppsAccess.storeOption,
    ],
    details: [
      """
      It asks one question after another, until it is ended. On a desktop it asks through
      xdg-desktop-portal, and elsewhere at its terminal. 'systemctl --user enable --now insula-agent' starts
      it with your desktop.
      """,
      """
      What you decide is kept; 'insula consent list' shows it. A question that you close decides nothing.
      Without an agent nobody is asked, and 'insula consent allow ID SERVICE' decides beforehand. 'insula run'
      at a terminal asks for the app that it has started.
      """,
    ],
    examples: ["insula agent", "insula agent --terminal"])

  private let isAtTerminal: Bool
  private let store: String?

  init(_ arguments: ParsedArguments) {
    isAtTerminal = arguments.has("terminal")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    let daemon = try AppsAccess.find(store, context).runner()
    let conversation = AgentConversation(
      try daemon.address(), user: context.uid, .nextTask(ofStarted: false))
    try Agent(try asker(for: daemon, context), conversation).run()
    return .ok
  }

  private func asker(for daemon: RunningDaemon, _ context: Context) throws -> any Asker {
    let tree = PanelTree(at: daemon.mountPoint, for: context.uid)
    var reasons = ["there is no terminal"]
    if !isAtTerminal {
      do throws(CommandFailure) {
        return try PortalAsker(tree, context)
      } catch {
        reasons.insert(error.message, at: 0)
      }
    }
    guard let asker = TerminalAsker(tree, word: context.ownValue(.promptWord)) else {
      throw CommandFailure(
        .failed,
        "agent: there is nobody to ask: \(reasons.joined(separator: ", and ")); "
          + "'insula consent allow ID SERVICE' decides without asking")
    }
    if let reason = reasons.dropLast().first { context.console.detail("asking at the terminal: \(reason)") }
    context.console.inform("agent: apps' questions appear here; ^C ends that")
    return asker
  }
}

/// Asks a person what the daemon wants to know, until one of them has gone.
struct Agent {
  private let asker: any Asker
  private let conversation: AgentConversation

  init(_ asker: any Asker, _ conversation: AgentConversation) {
    self.asker = asker
    self.conversation = conversation
  }

  /// How often, and after how long, a daemon that is being replaced is tried again.
  private static let attempts = 100
  private static let pause: Int32 = 100

  func run() throws {
    var failures = 0
    while true {
      do {
        try conversation.goOn()
        if let question = try next() {
          failures = 0
          try ask(question)
        }
        continue
      } catch let error as Errno {
        failures += 1
        guard failures <= Self.attempts else {
          throw CommandFailure(
            .notMounted,
            "agent: the daemon does not answer any more (\(error.message)); 'insula status' says more")
        }
      }
      // Nothing tells when there is another daemon.
      _ = try? waitForAny(of: [asker.events].compactMap { $0 }, milliseconds: Self.pause)
      try asker.look()
    }
  }

  /// Waits for something to ask; nil if something else has happened.
  private func next() throws -> AgentQuestion? {
    guard let daemon = conversation.fd else { throw Errno.ENOTCONN }
    let ready = try waitForAny(of: [daemon] + [asker.events].compactMap { $0 }, milliseconds: -1)
    if ready.dropFirst().contains(true) { try asker.look() }
    guard ready.first == true else { return nil }
    switch try conversation.take() {
    case .task(let task): return AgentQuestion(task)
    case .refused(let failure): throw CommandFailure(failure)
    case .takenBack, .nothing: return nil
    }
  }

  /// Asks until the daemon has taken an answer, or wants none any more.
  private func ask(_ question: AgentQuestion) throws {
    try asker.begin(question)
    while true {
      let watch = conversation.watch(question)
      guard let answer = try asker.answer(watch) else {
        asker.takeBack()
        // If the daemon has not said so itself, it may still count on us.
        if !watch.isTold { _ = try conversation.answer(question.number, .dismiss) }
        return
      }
      do throws(Errno) {
        if asker.end(try conversation.answer(question.number, answer), of: answer) { return }
      } catch {
        // Another daemon asks again.
        _ = asker.end(.tooLate, of: answer)
        throw error
      }
    }
  }
}
