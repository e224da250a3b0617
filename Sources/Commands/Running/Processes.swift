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
      """
      PID is the process ID of the 'insula run' that waits for the app. MEMORY is what its processes have in
      memory, where what they share counts for each, or what its cgroup counts; CPU is the time that they have
      used. REQUESTS are those that the kernel has sent through the app's view since the daemon's process was
      started. LIMITS are those that the app has and its caller has not.
      """
    ],
    storeUse: .looks)

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
    let running = AppInUse.all(try AppsAccess.find(store, context).running(for: uid))
    context.console.print(
      list: running, json: json, none: "No apps are running.",
      columns: [
        "IDENTIFIER", "USER", "PID", "MEMORY", "CPU", "PROCESSES", "REQUESTS", "LIMITS", "SINCE", "BUNDLE",
      ]
    ) { app in
      [
        app.identifier, app.userName, "\(app.pid)", app.memoryText,
        AppInUse.text(ofMilliseconds: app.cpuMilliseconds), "\(app.processes)",
        app.requestsText, app.limitsText, utcText(app.since), app.bundle,
      ]
    }
    return .ok
  }
}
