// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// `insula import`.
struct ImportCommand: Command {
  static let description = CommandDescription(
    name: "import", summary: "Replaces an app's data by the data of a package.",
    arguments: [.init(name: "FILE.xcappdata", help: "the package", isRequired: true, kind: .directory)],
    options: [
      .init(
        name: "replace",
        help: "replace the app's present data, if there is any; it can be restored for some days"),
      .init(
        name: "to", value: "ID", help: "import the data into this app (default: the app that it came from)",
        kind: .app),
      AppsAccess.userOption, AppsAccess.storeOption,
    ],
    details: [
      """
      The app must be installed, and must not be running. The container keeps its UUID. Either all of the
      data is replaced, in one step, or nothing is. 'insula removed list' shows the data that was replaced,
      which is deleted after some days.
      """
    ],
    examples: ["insula import ~/Editor.xcappdata --replace"],
    becomesUser: true)

  private let source: String
  private let replaces: Bool
  private let app: AppReference?
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    source = arguments.argument(0) ?? ""
    replaces = arguments.has("replace")
    app = try arguments.value("to").map { (text) throws(UsageError) in
      try Self.description.app(text)
    }
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    if let done = try ActingCommand.onMount(
      of: store, for: user, context,
      {
        ["import", "--store", $0] + (replaces ? ["--replace"] : [])
          + (app.map { ["--to", $0.text] } ?? []) + ["--", context.absolute(source)]
      })
    {
      return done
    }
    let uid = try AppsAccess.user(user, context)
    let directory = try context.openDirectory(source)
    let package = try DataPackage(directory.fd, path: source)
    let access = try AppsAccess.find(store, writing: true, context)
    let identifier = try app.map { try access.identifier(of: $0, for: uid) }
    let installed: AppDescription
    do {
      installed = try access.app(identifier ?? package.identifier, for: uid ?? context.uid)
    } catch StoreError.noApp where identifier == nil {
      throw DataFailure.otherApp(path: source, identifier: package.identifier.text)
    }
    // Whoever names an app has decided who gets them.
    if identifier == nil {
      if let team = package.team {
        guard team.includes(installed) else {
          throw DataFailure.otherTeam(
            path: source, team: team.text, app: installed.identifier, appsTeam: installed.team)
        }
      } else {
        context.console.inform(
          "\(source) does not say whose app's data it has; \(installed.identifier.sanitized) of the team "
            + "\(installed.team.sanitized) gets them")
      }
    }
    if let running = AppIdentifier(installed.identifier) {
      try access.requireEnded(running, for: uid ?? context.uid)
    }
    let container = try access.container(of: installed, for: uid)
    let report = try CopyProgress.show("importing", context.console) { note in
      try container.importData(from: package, replacing: replaces, progress: note) { new in
        try access.replaceData(with: new)
      }
    }
    report.tell(context.console)
    context.console.say(
      "Imported \(source) as the data of \(identifier ?? package.identifier) (\(report.words)).")
    return .ok
  }
}
