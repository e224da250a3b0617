// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Policy
internal import Store

/// `insula uninstall`.
struct UninstallCommand: Command {
  static let description = CommandDescription(
    name: "uninstall", summary: "Removes an app and, unless they are to be kept, its containers.",
    arguments: [.init(name: "ID", help: "the app's identifier or name", isRequired: true, kind: .app)],
    options: DomainChoice.options("") + [
      .init(name: "keep-data", help: "keep the containers, so that a later installation uses them again"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      Your own copy of an app comes before everyone's, which only an administrator can remove. If root means
      one of several, --everyone or --user must say which.
      """,
      """
      This also removes the app's containers in the home of every user who no longer has the app, and a
      group's container with the last app of that group. 'insula removed restore' puts them back for some
      days; see 'insula removed list'.
      """,
      """
      Data in iCloud containers is kept. So are containers that somebody has kept before, until their user
      starts an app that uses them or uninstalls an app that is not installed any more.
      """,
      """
      ID can also be a group or an iCloud container (iCloud.com.example.notes) whose apps are not installed
      any more: its container is removed. If everyone has an app of that name from another team, '--user'
      and your name say that you mean what you have.
      """,
    ],
    examples: ["sudo insula uninstall com.example.notes --keep-data"])

  private let app: AppReference
  private let choice: DomainChoice
  private let store: String?
  private let keepsData: Bool
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    app = try Self.description.app(arguments.argument(0))
    choice = try DomainChoice(arguments, of: Self.description)
    store = arguments.value("store")
    keepsData = arguments.has("keep-data")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    let identifier = try access.identifier(of: self.app, for: nil)
    let domain = try choice.forInstalled(identifier, access, isStrict: true)
    let (app, left) = try access.uninstall(identifier, of: domain, keepingData: keepsData)
    DesktopEntries.refresh(access, context)
    left.tell(in: access.root, context.console)
    if json {
      context.console.print(json: app)
    } else if let app {
      context.console.say(
        "Removed \(app.title)\(domain.isForEveryone ? "" : ", which was " + domain.words(context))"
          + "\(keepsData ? "; its containers are kept" : "")."
      )
    } else {
      context.console.say("Removed the containers that \(identifier) left behind.")
    }
    return .ok
  }
}
