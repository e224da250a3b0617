// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Policy
internal import Store

/// `insula system info`.
struct SystemInfoCommand: Command {
  static let description = CommandDescription(
    name: "system info",
    summary: "Shows the version of the system domain, and the one to which rollback returns.",
    options: [AppsAccess.storeOption, CommandDescription.json],
    storeUse: .looks)

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, context)
    let versions = try access.systemVersions()
    if json {
      context.console.print(json: SystemDescription(versions))
      return .ok
    }
    var rows = [["current", versions.current.words]]
    if let previous = versions.previous { rows.append(["before", previous.words]) }
    if !versions.current.root.isEmpty { rows.append(["seal", versions.current.root.asHexadecimal]) }
    context.console.print(table: rows)
    return .ok
  }
}
