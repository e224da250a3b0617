// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// `insula defaults domains`.
struct DefaultsDomainsCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "defaults domains", summary: "Lists the domains that have preferences.",
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    examples: ["insula defaults domains"],
    storeUse: .looks, becomesUser: true)

  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let words = json ? ["--json"] : []
    if let done = try DefaultsActing.perform("domains", words, user, store, context) { return done }
    let uid = try AppsAccess.user(user, context)
    let preferences = try Preferences.find(nil, of: uid, store: store, context)
    let names = try preferences?.domains().map(\.name) ?? []
    if json {
      context.console.print(json: names)
    } else if names.isEmpty {
      context.console.print("There are no domains.")
    } else {
      context.console.print(names.joined(separator: ", "))
    }
    return .ok
  }
}
