// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Policy

/// `insula network leave`.
struct NetworkLeaveCommand: Command {
  static let description = CommandDescription(
    name: "network leave", summary: "Leaves the network: its apps and its Library are gone from /Network.",
    options: [
      .init(name: "force", help: "also while its Library is used"), AppsAccess.storeOption,
      CommandDescription.json,
    ],
    details: ["Users keep what its apps have in their containers. The roots that were pinned are forgotten."])

  private let force: Bool
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    force = arguments.has("force")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    let network = try JoinedNetwork(changing: access)
    var daemon = try RunningDaemon(store, context)
    let outcomes = try network.apps.removeAll()
    // As long as an app of it is there, the network is known, and this can be done again.
    let isDone = !outcomes.contains { $0.result == .failed }
    if isDone {
      try network.removeLibrary(&daemon, force: force)
      try NetworkUsers(mountPoint: daemon.mountPoint).removeAll()
      try network.forget()
    }
    DesktopEntries.refresh(access, context)
    if json {
      context.console.print(json: outcomes)
      return isDone ? .ok : .failed
    }
    guard outcomes.filter({ $0.result == .failed }).tell(context.console) else { return .failed }
    context.console.say("This machine has left \(network.address.text.sanitized).")
    return .ok
  }
}
