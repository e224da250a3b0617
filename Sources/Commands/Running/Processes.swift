// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula ps`.
struct ProcessesCommand: Command {
  static let description = CommandDescription(
    name: "ps", summary: "Lists your running apps, or for root all running apps.",
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    details: [
      "PID is the process ID of the 'insula run' that waits for the app."
    ])

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
    context.console.print(
      list: running, json: json, none: "No apps are running.",
      columns: ["IDENTIFIER", "USER", "PID", "SINCE", "BUNDLE"]
    ) { app in
      [
        app.identifier, Account.numbered(app.user)?.name ?? "\(app.user)", "\(app.pid)",
        utcText(app.since), app.bundle,
      ]
    }
    return .ok
  }
}
