// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

/// `insula info`.
struct InfoCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "info", summary: "Shows details of an app, and its containers.",
    arguments: [.init(name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app)],
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    examples: ["insula info com.example.editor"],
    storeUse: .looks)

  private let app: AppReference
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try Self.description.app(arguments.argument(0))
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    let identifier = try access.identifier(of: self.app, for: uid)
    let app = try access.app(identifier, for: uid).below(access.root)
    if json {
      context.console.print(json: app)
      return .ok
    }
    context.console.print("\(app.name.sanitized) (\(app.identifier))")
    var rows = [
      ["  version", app.build == app.version ? app.version : "\(app.version) (build \(app.build))"],
      ["  team", app.team], ["  for", app.home ?? "all users"], ["  bundle", app.path],
      ["  executable", app.executable], ["  installed", utcText(app.installed)], ["  seal", app.seal],
    ]
    if let update = app.update {
      let build = update.build == update.version ? "" : " (build \(update.build))"
      rows.insert(
        ["  update", "to \(update.version)\(build), waits since \(utcText(update.since)) until it ends"],
        at: 1)
    }
    rows += app.groups.map { ["  group", $0] } + app.clouds.map { ["  icloud", $0] }
    rows += (app.containers ?? []).map { ["  \($0.kind) container", $0.path] }
    context.console.print(table: rows.map { [$0[0], $0[1].sanitized] })
    return .ok
  }
}
