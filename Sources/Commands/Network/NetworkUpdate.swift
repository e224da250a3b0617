// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// `insula network update`.
struct NetworkUpdateCommand: Command {
  static let description = CommandDescription(
    name: "network update", summary: "Makes /Network/Applications and Users what the joined network has now.",
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: [
      """
      Each app is copied to this machine, and verified by the roots that were pinned when it joined. One that
      runs is updated when it ends; what the network has no more is removed, and users keep its data.
      """
    ])

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    let network = try JoinedNetwork(changing: access)
    var daemon = try RunningDaemon(store, context)
    let outcomes = try network.update(&daemon)
    DesktopEntries.refresh(access, context)
    if json {
      context.console.print(json: outcomes)
      return outcomes.contains { $0.result == .failed } ? .failed : .ok
    }
    if outcomes.isEmpty { context.console.say("All apps of the network are as it has them.") }
    return outcomes.tell(context.console) ? .ok : .failed
  }
}
