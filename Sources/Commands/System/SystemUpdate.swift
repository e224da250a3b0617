// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO

/// `insula system update`.
struct SystemUpdateCommand: Command {
  static let description = CommandDescription(
    name: "system update", summary: "Replaces the whole system domain by a signed directory.",
    arguments: [.init(name: "DIR", help: "the signed directory", isRequired: true, kind: .directory)],
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: [
      """
      The signature must lead to a root that the store trusts. The previous version is kept for 'insula system
      rollback'.
      """
    ],
    examples: ["sudo insula system update NewSystem"])

  private let path: String
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    path = arguments.argument(0) ?? ""
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let tree = try context.openDirectory(path)
    let access = try AppsAccess.find(store, writing: true, context)
    let versions = try access.updateSystem(tree.fd, named: path)
    return SystemDescription.tell(versions, json, "now", context.console)
  }
}
