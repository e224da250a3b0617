// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Policy

/// `insula apps`.
struct AppsCommand: Command {
  static let description = CommandDescription(
    name: "apps", summary: "Lists the installed apps: the machine's and your own.",
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    details: [
      "For root, it lists the apps of all users, or with --user those that this user can use."
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
    let access = try AppsAccess.find(store, context)
    let apps = try access.apps(for: uid).map { $0.below(access.root) }
    context.console.print(
      list: apps, json: json, none: "No apps are installed.",
      columns: ["IDENTIFIER", "VERSION", "FOR", "BUNDLE"]
    ) {
      [
        $0.identifier, $0.version + ($0.update.map { " (\($0.version) waits)" } ?? ""), $0.home ?? "all",
        $0.path,
      ]
    }
    return .ok
  }
}
