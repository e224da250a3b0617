// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Store

/// `insula user list`.
struct UserListCommand: Command {
  static let description = CommandDescription(
    name: "user list", summary: "Lists the homes.",
    options: [HomesAccess.storeOption, CommandDescription.json],
    storeUse: .looks)

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let homes = try HomesAccess.open(store, writing: false, context) { homes in try homes.list() }
    context.console.print(
      list: homes, json: json, none: "There are no homes yet; 'insula user add NAME' creates one.",
      columns: ["HOME", "OWNER", "STATE"]
    ) { home in
      if home.isAway { return [home.name, "", "away"] }
      let missing = home.missing.isEmpty ? "complete" : "missing: " + home.missing.joined(separator: ", ")
      let state = home.problem.map { "can't be examined: \($0)" } ?? missing
      return [home.name, home.account ?? "uid \(home.uid)", state]
    }
    return .ok
  }
}
