// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula network list`.
struct NetworkListCommand: Command {
  static let description = CommandDescription(
    name: "network list", summary: "Lists the computers of the network, and what they share.",
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: [
      """
      They are in /Network/Servers, and mounted there when somebody looks. They are those that announce
      themselves (by avahi), and those of /etc/insula/network.conf, a line for each share:
      """,
      "  HOST NAME URL [read-only] [all|each]",
      """
      'each' lets each user have it for themselves, by their own account on the server, and is usual;
      'all' mounts it once, and is usual where the server judges by owners (nfs, smb, gluster).
      """,
    ],
    storeUse: .looks)

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    var daemon = try RunningDaemon(store, context)
    let list = try daemon.network()
    context.console.print(
      list: list.shares, json: json, none: "No computers of the network are known.",
      columns: ["SHARE", "FOR", "FROM", "URL"]
    ) { ["\($0.host)/\($0.name)", $0.isForAll ? "everyone" : "each user", $0.origin, $0.url] }
    for problem in list.problems { context.console.note(problem.sanitized) }
    return list.problems.isEmpty ? .ok : .failed
  }
}
