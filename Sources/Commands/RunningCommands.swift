// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import FoundationEssentials
internal import Glibc
internal import LinuxIO
internal import Policy

/// `insula ps`.
struct ProcessesCommand: Command {
  static let description = CommandDescription(
    name: "ps", summary: "Lists the apps that run: your own, or for root all.",
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    details: ["PID is the 'insula run' that waits for the app."])

  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let running = try AppsAccess.find(store, context).running(for: uid)
    if json {
      context.console.print(json: running)
    } else if running.isEmpty {
      context.console.print("No apps run.")
    } else {
      let rows = running.map { app in
        [
          app.identifier, Account.numbered(app.user)?.name ?? "\(app.user)", "\(app.pid)",
          Date(timeIntervalSince1970: TimeInterval(app.since)).formatted(.iso8601), app.bundle.harmless,
        ]
      }
      context.console.print(table: [["IDENTIFIER", "USER", "PID", "SINCE", "BUNDLE"]] + rows)
    }
    return .ok
  }
}

/// `insula kill`.
struct KillCommand: Command {
  static let description = CommandDescription(
    name: "kill", summary: "Ends an app that runs, with all of its processes, and returns when it is gone.",
    arguments: [.init(name: "ID", help: "the app's identifier", isRequired: true)],
    options: [
      .init(
        name: "signal", short: "s", value: "SIGNAL",
        help: "send it this signal, and return at once (default: TERM, and KILL after five seconds)"),
      AppsAccess.userOption, AppsAccess.storeOption,
    ],
    details: [
      "If it runs more than once, all of that is meant; root means that of all users, or with --user of one."
    ],
    examples: ["insula kill com.example.editor", "insula kill com.example.editor --signal HUP"])

  private let identifier: AppIdentifier
  private let signal: Int32?
  private let user: String?
  private let store: String?

  /// Those that can be passed on, and the one that ends everything.
  private static let signals: [String: Int32] = [
    "HUP": SIGHUP, "INT": SIGINT, "QUIT": SIGQUIT, "TERM": SIGTERM, "USR1": SIGUSR1, "USR2": SIGUSR2,
    "ALRM": SIGALRM, "KILL": SIGKILL,
  ]

  init(_ arguments: ParsedArguments) throws(UsageError) {
    identifier = try Self.description.identifier(arguments.argument(0))
    user = arguments.value("user")
    store = arguments.value("store")
    guard let word = arguments.value("signal") else {
      signal = nil
      return
    }
    let name = word.uppercased()
    let number = Self.signals[name.hasPrefix("SIG") ? String(name.dropFirst(3)) : name]
    guard let number = number ?? Int32(word).flatMap({ Self.signals.values.contains($0) ? $0 : nil }) else {
      throw Self.description.error(
        "'\(word)' can't be sent; there are \(Self.signals.keys.sorted().joined(separator: ", "))")
    }
    signal = number
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    try AppsAccess.find(store, context).end(identifier, of: uid, with: signal)
    return .ok
  }
}

extension AppsAccess {
  /// What runs; nothing does where no daemon is.
  func running(for user: UInt32?) throws -> [RunningApp] {
    guard case .daemon(let client, let status) = self else { return [] }
    var request = ControlRequest(.running)
    request.user = user
    return try client.ask(request, of: status).orFailure().running ?? []
  }

  /// Ends what runs of an app.
  func end(_ identifier: AppIdentifier, of user: UInt32?, with signal: Int32?) throws {
    guard case .daemon(let client, let status) = self else {
      throw CommandFailure(.failed, "\(identifier) does not run: its store is not mounted")
    }
    var request = ControlRequest(.end)
    request.identifier = identifier.text
    request.user = user
    request.signal = signal
    _ = try client.ask(request, of: status).orFailure()
  }
}
