// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Glibc
internal import Policy

/// `insula kill`.
struct KillCommand: Command {
  static let description = CommandDescription(
    name: "kill", summary: "Ends a running app with all of its processes, and returns when it is gone.",
    arguments: [.init(name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app)],
    options: [
      .init(
        name: "signal", short: "s", value: "SIGNAL",
        help: "send this signal and return at once (default: TERM, then KILL after five seconds)",
        kind: .word(signals.keys.inOrder(by: <))),
      AppsAccess.userOption, AppsAccess.storeOption,
    ],
    details: [
      """
      If the app runs more than once, this ends all of its instances; for root, those of all users, or with
      '--user' those of one user.
      """
    ],
    examples: ["insula kill com.example.editor", "insula kill com.example.editor --signal HUP"])

  private let app: AppReference
  private let signal: Int32?
  private let user: String?
  private let store: String?

  /// Those that can be passed on, and the one that ends everything.
  private static let signals: [String: Int32] = [
    "HUP": SIGHUP, "INT": SIGINT, "QUIT": SIGQUIT, "TERM": SIGTERM, "USR1": SIGUSR1, "USR2": SIGUSR2,
    "ALRM": SIGALRM, "KILL": SIGKILL,
  ]

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try Self.description.app(arguments.argument(0))
    user = arguments.value("user")
    store = arguments.value("store")
    guard let word = arguments.value("signal") else {
      signal = nil
      return
    }
    let name = word.uppercased()
    let number = Self.signals[name.hasPrefix("SIG") ? String(name.dropFirst(3)) : name]
    guard let number = number ?? Int32(word).flatMap({ Self.signals.values.contains($0) ? $0 : nil }) else {
      let known = Self.signals.keys.inOrder(by: <)
      throw Self.description.error(
        "unknown signal '\(word)'\(Suggestion.text(for: word, among: known)); known are "
          + known.joined(separator: ", "))
    }
    signal = number
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    try access.end(access.identifier(of: app, for: uid), of: uid, with: signal)
    return .ok
  }
}
