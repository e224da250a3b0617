// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// `insula install`.
struct InstallCommand: Command {
  static let description = CommandDescription(
    name: "install", summary: "Installs an app after checking its signature and every file of it.",
    arguments: [
      .init(
        name: "BUNDLE", help: "a signed bundle: Name.app, or a file of 'insula pack'", isRequired: true,
        kind: .file)
    ],
    options: DomainChoice.options("") + [
      .init(name: "utilities", help: "for everyone, in /Applications/Utilities"),
      .init(name: "network", help: "for everyone, in /Network/Applications"), AppsAccess.storeOption,
      CommandDescription.json,
    ],
    details: [
      """
      An administrator installs an app for everyone, in /Applications; anybody else for themselves, in the
      Applications directory of their own home. --everyone and --user say it explicitly.
      """,
      """
      The app's signature must lead to a root that the store trusts. 'insula trust add FILE --store STORE'
      adds a trusted root.
      """,
      """
      An installed app is read-only: nobody, not even root, can change it through the mount until it is
      updated or uninstalled.
      """,
      """
      An app whose signature opens X11 to it (org.insula.desktop.x11) can read and type into all windows of
      the display while it runs; a note says so.
      """,
      Context.bundleForms,
    ],
    examples: [
      "sudo insula install Notes.app", "sudo insula install Notes.app.tar",
      "insula install Notes.app", "sudo insula install Notes.app --user anna",
    ])

  private let bundle: String
  private let choice: DomainChoice
  private let place: AppDomain?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    bundle = arguments.argument(0) ?? ""
    choice = try DomainChoice(arguments, of: Self.description)
    let chosen = AppDomain.places.filter { arguments.has($0.name) }
    if chosen.count > 1 || (!chosen.isEmpty && arguments.value("user") != nil) {
      throw Self.description.error(
        "an app is in one place; give only one of '--user', '--utilities' and '--network'")
    }
    place = chosen.first?.domain
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let source = try context.openBundleSource(bundle)
    let access = try AppsAccess.find(store, writing: true, context)
    let domain = try place ?? choice.forNewApp(access)
    let app = try context.withBundle(source) { (directory, name) in
      let app = try access.install(directory, named: name, for: domain)
      context.console.warn(aboutAccessOf: app, in: directory, named: name)
      return app
    }
    DesktopEntries.refresh(access, context)
    if json {
      context.console.print(json: app)
    } else {
      context.console.say(
        "Installed \(app.title)\(domain.isForEveryone ? "" : " " + domain.words(context)) "
          + "at \(access.root)/\(app.path)."
      )
    }
    return .ok
  }
}
