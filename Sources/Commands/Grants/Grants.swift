// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula grants`.
struct GrantsCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "grants", summary: "Lists your grants to apps.",
    arguments: [.init(name: "ID", help: "only the grants of this app", kind: .app)],
    options: [
      .init(name: "wait", help: "inside an app: list them when they have changed, and wait until then"),
      AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      For root, it lists the grants of all users, or with --user those of one user. Inside an app, it lists
      what was granted to that app.
      """
    ],
    storeUse: .looks)

  private let app: AppReference?
  private let user: String?
  private let store: String?
  private let json: Bool
  private let waits: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try arguments.argument(0).map { (text) throws(UsageError) in
      try Self.description.app(text)
    }
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
    waits = arguments.has("wait")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    let identifier = try app.map { try access.identifier(of: $0, for: uid) }
    if waits {
      guard let own = access as? AppAccess else {
        throw CommandFailure(.usage, "grants: '--wait' is for use inside an app")
      }
      try own.awaitGrantChange()
    }
    let places = try access.grants(identifier, of: uid).map { place in
      var place = place
      place.path = "\(access.root)/\(place.path)"
      return place
    }
    let showsUsers = context.isRoot && uid == nil
    context.console.print(
      list: places, json: json, none: "There are no grants.",
      columns: ["APP"] + (showsUsers ? ["USER"] : []) + ["ACCESS", "PATH"]
    ) { place in
      let user = showsUsers ? [Account.numbered(place.user)?.name ?? "uid \(place.user)"] : []
      let state =
        place.isOutOfReach == true
        ? "  (somewhere below, out of your reach)" : place.isMissing ? "  (missing)" : ""
      return [place.identifier] + user + [place.access.rawValue, place.path + state]
    }
    return .ok
  }
}
