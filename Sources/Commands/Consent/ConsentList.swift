// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula consent list`.
struct ConsentListCommand: Command {
  static let description = CommandDescription(
    name: "consent list", summary: "Lists which apps may use what is private, and which may not.",
    arguments: [
      .init(name: "ID", help: "only this app", kind: .app), ConsentWords.argument("only this service"),
    ],
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    details: [
      """
      An app that wants your photos, your contacts or the like has to ask you first. This lists what was
      decided. For root, it lists the decisions of all users, or with --user those of one user.
      """,
      ConsentWords.states, ConsentWords.list,
    ],
    storeUse: .looks)

  private let app: AppReference?
  private let service: PrivacyService?
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try arguments.argument(0).map { (text) throws(UsageError) in
      try Self.description.app(text)
    }
    service = try Self.description.service(arguments.argument(1))
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    let identifier = try app.map { try access.identifier(of: $0, for: uid).text }
    let found = try access.consents(.list(app: identifier, user: access.orOneself(uid)))
    let showsUsers = context.isRoot && uid == nil
    context.console.print(
      list: found.filter { service == nil || $0.service == service }, json: json,
      none: "Nothing was decided.",
      columns: ["APP"] + (showsUsers ? ["USER"] : []) + ["SERVICE", "SINCE", "STATE"]
    ) { status in
      let user = showsUsers ? [Account.numbered(status.user)?.name ?? "uid \(status.user)"] : []
      return [status.identifier] + user
        + [status.service.rawValue, status.changedWords, status.stateWords]
    }
    return .ok
  }
}
