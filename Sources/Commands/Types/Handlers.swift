// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// `insula handlers`.
struct HandlersCommand: Command {
  static let description = CommandDescription(
    name: "handlers", summary: "Shows or chooses which app opens documents of a type.",
    arguments: [
      .init(
        name: "TYPE",
        help: "an identifier, or an extension with a period before it (default: what you have chosen)")
    ],
    options: [
      .init(name: "set", value: "ID", help: "let this app open them, whatever it says of itself", kind: .app),
      .init(name: "reset", help: "take your choice back"),
      .init(name: "desktop", help: "let the desktop and xdg-open start the apps that are installed now"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The first app in the list opens them: the one that you have chosen; then those that own the type, those
      that open it by default, and alternates; of these, the one that names the nearest type. A choice is for
      a type itself, not for those that conform to it. Only a person can choose, never an app.
      """,
      """
      --desktop writes an entry for each app into ~/.local/share/applications (or below XDG_DATA_HOME), with
      the MIME types that it is the first to open. It is kept up to date when you install or choose apps.
      """,
    ],
    examples: ["insula handlers .md", "insula handlers public.png --set com.example.viewer"])

  private let type: String?
  private let chosen: AppReference?
  private let resets: Bool
  private let desktop: Bool
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    type = arguments.argument(0)
    chosen = try arguments.value("set").map { (text) throws(UsageError) in try Self.description.app(text) }
    resets = arguments.has("reset")
    desktop = arguments.has("desktop")
    store = arguments.value("store")
    json = arguments.has("json")
    guard [chosen != nil, resets, desktop].filter({ $0 }).count <= 1 else {
      throw Self.description.error("'--set', '--reset' and '--desktop' can't be combined; give one of them")
    }
    guard type != nil || chosen == nil && !resets else {
      throw Self.description.error("name the TYPE that you choose an app for")
    }
    guard type == nil || !desktop else {
      throw Self.description.error("'--desktop' is for all types; leave out TYPE")
    }
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: chosen != nil || resets, context)
    let known = KnownDocuments(try access.documents(for: nil))
    if desktop {
      let entries = DesktopEntries(known, access, context)
      try entries.write()
      context.console.say("The desktop can start \(known.apps.count) apps: \(entries.place.sanitized).")
      return .ok
    }
    guard let type else {
      context.console.print(
        list: known.choices, json: json, none: "You have chosen no apps for types.",
        columns: ["TYPE", "APP"]
      ) { [$0.type, $0.identifier] }
      return .ok
    }
    let meant = try known.type(named: type)
    if chosen != nil || resets {
      let identifier = try chosen.map { try access.identifier(of: $0, for: nil) }
      try access.choose(identifier, for: meant.identifier)
      DesktopEntries.refresh(access, context)
      context.console.say(
        identifier.map { "\($0) opens your documents of the type \(meant.identifier)." }
          ?? "You have no choice for the type \(meant.identifier) any more.")
      return .ok
    }
    context.console.print(
      list: known.openers(of: meant), json: json,
      none: "No app opens documents of the type \(meant.identifier).",
      columns: ["APP", "RANK", "NAME"]
    ) { [$0.identifier, $0.rank, $0.name.sanitized] }
    return .ok
  }
}
