// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

private let userOption = CommandDescription.Option(
  name: "user", short: "u", value: "NAME", help: "in the home of this user, and not for everyone")

/// `insula install`.
struct InstallCommand: Command {
  static let description = CommandDescription(
    name: "install", summary: "Installs an app, after its signature and every file of it were checked.",
    arguments: [.init(name: "BUNDLE", help: "a signed bundle: Name.app", isRequired: true, kind: .directory)],
    options: [userOption, AppsAccess.storeOption, CommandDescription.json],
    details: [
      """
      For everyone it goes to /Applications, which takes an admin; \
      with --user to that user's own Applications.
      Its signature must lead to a root that the store trusts: 'insula trust add FILE --store STORE'.
      """,
      "What is installed is sealed: nobody changes it, root included, until it is updated or uninstalled.",
    ],
    examples: ["sudo insula install Notes.app", "insula install Notes.app --user anna"])

  private let bundle: String
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    bundle = arguments.argument(0) ?? ""
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let source = try context.openDirectory(bundle)
    let access = try AppsAccess.find(store, writing: true, context)
    var order = AppOrder(.install, home: user)
    order.bundle = context.name(of: bundle)
    let app = try access.perform(order, on: source.fd, context).app
    guard let app else { return .failed }
    if json {
      context.console.print(json: app)
    } else {
      context.console.print("Installed \(app.title) at \(access.root)/\(app.path).")
    }
    return .ok
  }
}

/// `insula update`.
struct UpdateCommand: Command {
  static let description = CommandDescription(
    name: "update", summary: "Puts another version in the place of an installed app; its containers stay.",
    arguments: [
      .init(
        name: "BUNDLE", help: "a signed bundle of the same app and team", isRequired: true, kind: .directory)
    ],
    options: [
      userOption,
      .init(name: "allow-downgrade", help: "take an older version, or the same one again, too"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      "The new version is there at once and whole, or the old one stays. "
        + "An app that runs is not updated (the message\n"
        + "says whose); end it first with 'insula kill ID'."
    ],
    examples: ["sudo insula update Notes.app"])

  private let bundle: String
  private let user: String?
  private let store: String?
  private let allowsDowngrade: Bool
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    bundle = arguments.argument(0) ?? ""
    user = arguments.value("user")
    store = arguments.value("store")
    allowsDowngrade = arguments.has("allow-downgrade")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let source = try context.openDirectory(bundle)
    let access = try AppsAccess.find(store, writing: true, context)
    var order = AppOrder(.update, home: user)
    order.bundle = context.name(of: bundle)
    order.allowsDowngrade = allowsDowngrade
    let reply = try access.perform(order, on: source.fd, context)
    guard let app = reply.app, let before = reply.before else { return .failed }
    reply.tellWhatStays(in: access.root, context.console)
    if json {
      context.console.print(json: ["before": before, "now": app])
    } else {
      context.console.print("Updated \(app.name.harmless) from \(before.release) to \(app.release).")
    }
    return .ok
  }
}

/// `insula uninstall`.
struct UninstallCommand: Command {
  static let description = CommandDescription(
    name: "uninstall", summary: "Removes an app, and its containers unless they are to be kept.",
    arguments: [.init(name: "ID", help: "the app's identifier, as 'insula apps' shows it", isRequired: true)],
    options: [
      .init(
        name: "user", short: "u", value: "NAME",
        help: "the one in the home of this user (default: your own, where you have one, or else everyone's)"),
      .init(name: "keep-data", help: "leave the containers to the next installation"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The containers of all users who have the app no more \
      go with it, and those of groups with their last member.
      What lies in iCloud stays. 'insula export ID FILE' saves a container before.
      What in a container is not its owner's, or has a flag that protects it (uchg, schg...), stays beside it.
      """
    ],
    examples: ["sudo insula uninstall com.example.notes --keep-data"])

  private let identifier: AppIdentifier
  private let user: String?
  private let store: String?
  private let keepsData: Bool
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    identifier = try Self.description.identifier(arguments.argument(0))
    user = arguments.value("user")
    store = arguments.value("store")
    keepsData = arguments.has("keep-data")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    var order = AppOrder(.uninstall, home: try user ?? ownHome(access, context))
    order.identifier = identifier
    order.keepsData = keepsData
    let reply = try access.renewed(context).perform(order, on: nil, context)
    reply.tellWhatStays(in: access.root, context.console)
    if json {
      context.console.print(json: reply.before)
    } else if let before = reply.before {
      context.console.print("Removed \(before.title)\(keepsData ? "; its containers stay" : "").")
    } else {
      context.console.print("Removed what \(identifier) had left.")
    }
    return .ok
  }

  /// The home of the one who asks, where the app is theirs alone: nobody but an admin removes one of the
  /// machine's.
  private func ownHome(_ access: AppsAccess, _ context: Context) throws -> String? {
    guard !context.isRoot else { return nil }
    do {
      return try access.app(identifier, for: nil, context).home
    } catch StoreError.noApp {
      return nil
    }
  }
}

extension ControlReply {
  /// Names what stays of containers that were removed.
  func tellWhatStays(in root: String, _ console: Console) {
    for thing in left ?? [] {
      console.note("\("\(root)/\(thing.path)".harmless) stays: \(thing.reason)")
    }
  }
}

extension InstalledApp {
  /// What a person knows it by.
  var title: String { "\(name.harmless) \(release) (\(identifier))" }

  /// The version that a person knows.
  var release: String { (shortVersion.isEmpty ? version : shortVersion).harmless }
}
