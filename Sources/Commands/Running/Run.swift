// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

/// `insula run`.
struct RunCommand: Command {
  static let description = CommandDescription(
    name: "run", summary: "Runs an app in a view of the tree that contains only what the app may use.",
    arguments: [
      .init(name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app),
      .init(
        name: "COMMAND", help: "a command with its arguments, to run instead of the app",
        isRepeated: true, mayBeEmpty: true),
    ],
    options: [
      .init(
        name: "env", value: "NAME=VALUE",
        help: "give the app this variable too (repeatable); not those of the sandbox and the loader",
        mayRepeat: true, mayBeEmpty: true),
      .init(
        name: "cwd", value: "DIR", help: "start in this directory, as the app sees it (default: its home)"),
    ] + ChosenLimits.options + [
      AppsAccess.userOption, AppsAccess.storeOption,
      .init(
        name: "args", value: "ARG...", help: "pass everything that follows to the app", takesRest: true),
    ],
    details: [
      """
      The view has the same path as the whole tree. Of the rest of the machine, only /usr and what programs
      need of /etc can be reached. HOME, TMPDIR and XDG_* are the app's, and so is the working directory
      without --cwd; a relative DIR is below the app's home. If DIR does not exist for the app, it is not
      started, and the exit status is 125. The app has
      network access if it is entitled to it (com.apple.security.network.client or server).
      """,
      """
      The exit status is that of the program; 128 plus the signal's number if a signal ended it; 127 if
      COMMAND does not exist. Signals are passed on to the program. When this process ends, all processes of
      the app end.
      """,
      """
      The limits of memory, processes and CPU hold for all processes of the app together, where systemd gives
      'insula run' a scope of its own, or where it is alone in a cgroup (version 2) that is delegated to it.
      Elsewhere memory is limited for each process, by what it reserves, and the CPU can't be. The app's
      author may have set limits (InsulaLimits in Info.plist); yours count instead, and 'none' lifts them.
      """,
      "If COMMAND has options of its own, write '--' before it.",
    ],
    examples: [
      "insula run com.example.editor", "insula run Editor --args Letter.txt",
      "insula run com.example.editor --env LANG=C --cwd Documents",
      "insula run com.example.editor -- ls -l Documents",
      "insula run com.example.editor --memory 512M --processes 50",
      "sudo insula run --user anna com.example.editor",
    ],
    becomesUser: true)

  private let app: AppReference
  private let command: [String]
  private let isWithArguments: Bool
  private let own: [String]
  private let variables: [ChosenVariable]
  private let directory: String?
  private let limits: ChosenLimits
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try Self.description.app(arguments.argument(0))
    command = Array(arguments.positional.dropFirst())
    if command.first?.isEmpty == true { throw Self.description.error("COMMAND is empty") }
    isWithArguments = arguments.has("args")
    own = arguments.allValues("args")
    guard command.isEmpty || !isWithArguments else {
      throw Self.description.error(
        "'--args' is for the app itself; the arguments of a COMMAND follow it, after '--'")
    }
    directory = arguments.value("cwd")
    if directory?.isEmpty == true { throw Self.description.error("DIR is empty") }
    variables = try arguments.allValues("env").map { (text) throws(UsageError) in
      do throws(ChosenVariable.Refusal) {
        return try ChosenVariable(text)
      } catch {
        throw Self.description.error("--env: \(error.message)")
      }
    }
    limits = try ChosenLimits(arguments, for: Self.description)
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    try StandardStreams.check(context.console)
    let bubblewrap = try Bubblewrap.require(context)
    if let account = try ActingCommand.account(user, context) { return try run(as: account, context) }
    switch try OwnTerminal.move(owner: context.uid, context) {
    case .ended(let status): return .program(status)
    case .goesOn(let processes, let prompts):
      return try run(with: bubblewrap, processes, prompts: prompts, context)
    }
  }

  private func run(
    with bubblewrap: String, _ processes: TerminalProcesses, prompts: FD?, _ context: Context
  ) throws -> ExitCode {
    let account =
      Account.numbered(context.uid)
      ?? Account(
        name: "uid-\(context.uid)", uid: context.uid, gid: ProcessID.group, home: context.home)
    let access = try AppsAccess.find(store, context)
    var daemon = try access.runner()
    let identifier = try access.identifier(of: app, for: account.uid)
    try OwnNamespace.keepDescriptors()
    let files = SandboxFiles(account)
    let ours = processes.all
    let cgroups = Cgroup.root()?.release()
    let program = try OwnProgram()
    let whole = try TreePlace(daemon.mountPoint)
    var scope = cgroups == nil ? nil : DelegatedScope.prepare(ours, context)
    try enterNamespace()
    let sockets = DesktopSockets(context)
    let graphics = GraphicsDevices()
    let place = try ViewPlace(bubblewrap: bubblewrap, program)
    let connection = daemon.isRootless ? SharedFD(try place.mountOwn(source: "insula")) : nil
    let (plan, mount) = try daemon.launch(identifier, for: account.uid, over: connection)
    let address = try daemon.address()
    var ending = AppEnding(status: nil)
    defer { EndingLog(address).tell(ending, context.console) }
    if let mount {
      try place.attach(mount)
    } else if plan.isReadOnly == true {
      try place.makeViewReadOnly()
    }
    let hasSocket =
      try !Sandbox.coversSocket(plan.mountPoint) && daemon.giveSocket(in: place, context.console)
    let enforced = try EnforcedLimits(
      of: plan.identifier, bundle: plan.limits ?? ResourceLimits(), chosen: limits, cgroups: cgroups,
      scope: scope, ours: ours, context.console)
    // Its process is not to stay while the app runs.
    scope = nil
    var status: Int32?
    defer { enforced.end(status, context.console) }
    if let memory = enforced.memory { try place.limit(memory: memory) }
    var leftOut: [(path: String, why: Errno)] = []
    let tree = try place.tree(running: plan.executablePlaces, leftOut: &leftOut)
    for (path, why) in leftOut {
      context.console.note(
        "\(plan.mountPoint)\(path) is not there just now (\(why.message)), so the app has nothing that it "
          + "was granted there; 'insula grants \(plan.identifier)' lists its grants")
    }
    try place.write(files.all(plan))
    let desktop = try AppDesktop(of: plan, from: sockets, graphics, in: place, context)
    try OwnNamespace.countProcessesAnew()
    let sandbox = Sandbox(
      plan, place, tree: tree, directory: directory, desktop: desktop,
      hasSocket: hasSocket, limits: enforced.words)
    let running = RunningProgram(
      path: bubblewrap,
      environment: SandboxEnvironment(
        account, plan, adding: variables, directory: sandbox.directory, desktop: desktop,
        hasSocket: hasSocket, context
      ).variables,
      filter: SystemCallFilter(refusesProgramsInMemory: plan.executablePlaces != nil),
      keeper: processes.keeper,
      limits: enforced,
      agent: prompts.map { terminal in
        RunAgent(
          AgentConversation(address, user: account.uid, .nextTask(ofStarted: true)), terminal: terminal,
          mountPoint: plan.mountPoint, user: account.uid)
      },
      reader: hasSocket
        ? RunReader(
          AgentConversation(address, user: account.uid, .nextReading(adds: true)),
          ItemReaderProcess(whole, bubblewrap: bubblewrap, program)) : nil)
    // Nobody else has anything to do with us from here on. Where the kernel can't see to that, the doctor
    // says so.
    _ = OwnNamespace.stayAmongOurselves()
    let streams = try FileStreams()
    defer { streams.restore() }
    let ended = try withExtendedLifetime(desktop) {
      try running.run(streams) { keptSignals in
        sandbox.arguments(for: command, own: own, restoring: keptSignals)
      }
    }
    status = ended
    ending = AppEnding(status: ended, limit: enforced.reached)
    let told = streams.end(ended, context.console)
    if StartDiagnosis.statuses.contains(ended) {
      let diagnosis = StartDiagnosis(
        mountPoint: plan.mountPoint, tree: tree, directory: sandbox.directory,
        runsWhatItWrites: plan.executablePlaces == nil)
      let started = command.first ?? "\(plan.mountPoint)/\(plan.executable)"
      if let reason = diagnosis.reason(started) { context.console.note(reason) }
    }
    return .program(told)
  }

  /// Runs it in that user's name, who is the one that the daemon then sees.
  private func run(as account: Account, _ context: Context) throws -> ExitCode {
    // Which store is meant by whoever gives the command.
    let store = try RunningDaemon(store, context).store
    var words = ["run", "--store", store]
    for variable in variables { words += ["--env", "\(variable.name)=\(variable.value)"] }
    if let directory { words.append("--cwd=\(directory)") }
    words += limits.words
    words += isWithArguments ? [app.text, "--args"] + own : ["--", app.text] + command
    return try ActingCommand.perform(words, as: account, context)
  }

  private func enterNamespace() throws {
    do throws(Errno) {
      try OwnNamespace.enter()
    } catch {
      throw CommandFailure(.failed, Bubblewrap.withoutNamespaces(error))
    }
  }
}
