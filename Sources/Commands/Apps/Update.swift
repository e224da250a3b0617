// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// `insula update`.
struct UpdateCommand: Command {
  static let description = CommandDescription(
    name: "update", summary: "Replaces an installed app by another version; its containers stay.",
    arguments: [
      .init(
        name: "BUNDLE|ID",
        help:
          "a signed bundle of the same app, or a file of 'insula pack'; with --cancel or --from, an app's ID",
        kind: .either(.file, .app))
    ],
    options: [
      .init(name: "when-closed", help: "if the app is running, update it when it ends"),
      .init(name: "cancel", help: "give up the update of ID that waits until the app ends"),
      .init(
        name: "all", value: PackageSource.placeholder,
        help: "update all apps of which this directory or server has a later version", kind: .directory),
      .init(
        name: "from", value: PackageSource.placeholder, help: "update ID from this directory or server",
        kind: .directory),
      .init(name: "dry-run", short: "n", help: "with --all or --from, only say what there is to update"),
    ] + DomainChoice.options("") + [
      .init(name: "allow-downgrade", help: "allow an older version, or the same version again"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The update happens in one step: either the new version is installed completely, or the old one stays. A
      running app is not updated; the message says whose it is. End it first with 'insula kill ID', or use
      --when-closed.
      """,
      """
      With --when-closed, the new version of a running app is verified and copied now, and takes the place of
      the old one when nobody runs that any more, or at the next start of the app after that. It is verified
      again then. Whoever starts the app meanwhile gets the version that is running. An app has at most one
      update that waits: a later one takes its place, and removing the app removes it too. 'insula info'
      shows it, and 'insula log' says what came of it.
      """,
      """
      Your own copy of an app comes before everyone's, which only an administrator can update. --everyone and
      --user say which is meant.
      """,
      """
      --all and --from take a directory of packed apps that has an index of 'insula index', or its address on
      a server of files (http, https or file; the first two need curl). The index must be signed by a team
      that the store trusts, and be no older than the last one that was seen there. It only says what there
      is: each app must be signed by its own team, as ever. --all updates everyone's apps for an
      administrator, and your own; one that can't be updated keeps no other from it.
      """,
      Context.bundleForms,
    ],
    examples: [
      "sudo insula update --all https://apps.example.com/stable --when-closed",
      "sudo insula update Notes.app", "sudo insula update Notes.app.tar --when-closed",
      "insula update --cancel com.example.notes",
    ])

  private let named: String
  private let cancelled: AppReference?
  /// Where updates come from, and of which app; nil for all.
  private let source: (place: String, app: AppReference?)?
  private let isDryRun: Bool
  private let choice: DomainChoice
  private let store: String?
  private let allowsDowngrade: Bool
  private let whenClosed: Bool
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    named = arguments.argument(0) ?? ""
    cancelled = arguments.has("cancel") ? try Self.description.app(named) : nil
    choice = try DomainChoice(arguments, of: Self.description)
    store = arguments.value("store")
    allowsDowngrade = arguments.has("allow-downgrade")
    whenClosed = arguments.has("when-closed")
    json = arguments.has("json")
    isDryRun = arguments.has("dry-run")
    let (all, from) = (arguments.value("all"), arguments.value("from"))
    source =
      try from.map { (place) throws(UsageError) in (place, try Self.description.app(arguments.argument(0))) }
      ?? all.map { (place: $0, app: nil) }
    try Self.check(arguments)
  }

  /// Throws what makes no sense together.
  private static func check(_ arguments: ParsedArguments) throws(UsageError) {
    let isFromSource = arguments.value("all") != nil || arguments.value("from") != nil
    if arguments.has("cancel"),
      isFromSource || ["when-closed", "allow-downgrade", "dry-run"].contains(where: arguments.has)
    {
      throw description.error("'--cancel' can't be combined with options of an update")
    }
    if arguments.value("all") != nil {
      if arguments.value("from") != nil { throw description.error("'--all' and '--from' can't be combined") }
      if let word = arguments.argument(0) {
        throw description.error(
          "'--all' updates all apps, and '\(word.sanitized)' names one; 'update ID --from' updates only that")
      }
      if arguments.has("allow-downgrade") {
        throw description.error("'--allow-downgrade' is for one app, and not for '--all'")
      }
    }
    if arguments.has("dry-run"), !isFromSource {
      throw description.error("'--dry-run' is for '--all' and '--from'")
    }
    if arguments.value("all") == nil, arguments.argument(0) == nil {
      throw description.error("BUNDLE is missing (a signed bundle of the same app and team)")
    }
  }

  func run(in context: Context) throws -> ExitCode {
    if let cancelled { return try cancel(cancelled, context) }
    if let source { return try update(from: source.place, source.app, context) }
    let source = try context.openBundleSource(named)
    let access = try AppsAccess.find(store, writing: true, context)
    return try context.withBundle(source) { (directory, name) in
      let identifier = try Self.identifier(of: directory, name)
      let domain = try choice.forInstalled(identifier, access, isStrict: false)
      let outcome =
        whenClosed
        ? try access.updateWhenClosed(
          directory, named: name, for: domain, allowingDowngrade: allowsDowngrade)
        : try access.updated(directory, named: name, for: domain, allowingDowngrade: allowsDowngrade)
      DesktopEntries.refresh(access, context)
      tell(outcome, domain, access)
      context.console.warn(aboutAccessOf: outcome.app, in: directory, named: name)
      return .ok
    }
  }

  private func cancel(_ app: AppReference, _ context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    let identifier = try access.identifier(of: app, for: nil)
    let domain = try choice.forInstalled(identifier, access, isStrict: true)
    let waiting = try access.cancelUpdate(of: identifier, for: domain)
    if json {
      context.console.print(json: ["now": waiting.before, "cancelled": waiting.app])
    } else {
      context.console.say(
        "\(waiting.app.name.sanitized) stays at \(waiting.before.release): the update to "
          + "\(waiting.app.release) was cancelled.")
    }
    return .ok
  }

  private func tell(_ outcome: UpdateOutcome, _ domain: AppDomain, _ access: any StoreAccess) {
    let console = access.context.console
    outcome.left.tell(in: access.root, console)
    if json {
      console.print(json: outcome.json)
    } else {
      console.say(outcome.words(domain.words(access.context)))
    }
  }

  private func update(from place: String, _ app: AppReference?, _ context: Context) throws -> ExitCode {
    let source = try PackageSource(place, context, of: Self.description)
    let access = try AppsAccess.find(store, writing: !isDryRun, context)
    var update = try SourceUpdate(source, access)
    update.allowsDowngrade = allowsDowngrade
    update.whenClosed = whenClosed
    update.isDryRun = isDryRun
    var apps = try access.apps(for: nil)
    if let app {
      let identifier = try access.identifier(of: app, for: nil)
      guard update.index.apps.contains(where: { $0.identifier.lowercased() == identifier.text.lowercased() })
      else {
        throw CommandFailure(.failed, "the index of \(source.name.sanitized) has no \(identifier)")
      }
      let domain = try choice.forInstalled(identifier, access, isStrict: false)
      apps = apps.filter {
        $0.identifier.lowercased() == identifier.text.lowercased() && AppDomain(of: $0) == domain
      }
      if apps.isEmpty { throw StoreError.noApp(identifier: identifier.text) }
    } else {
      apps = apps.filter { choice.includes($0, access) }
    }
    let results = try update.update(apps)
    DesktopEntries.refresh(access, context)
    update.tell(results, json: json)
    return results.contains { $0.result == .failed } ? .failed : .ok
  }

  /// Which app a bundle says it is; what that is worth, whoever installs it finds out.
  private static func identifier(of directory: FD, _ name: String) throws -> AppIdentifier {
    do {
      let bundle = try CodeBundle(in: try directory.reopened(O_RDONLY | O_DIRECTORY), name: name)
      if let identifier = AppIdentifier(bundle.info.identifier) { return identifier }
      throw CommandFailure(
        .found(BundleProblem(.badIdentifier)), "\(name.sanitized) has no identifier that an app can have")
    } catch let finding as Bundles.Finding {
      throw CommandFailure(
        .found(BundleProblem(finding.kind)), "\(name) was refused: \(finding.message)".sanitized)
    }
  }
}

extension UpdateOutcome {
  /// The new version.
  fileprivate var app: InstalledApp {
    switch self {
    case .updated(_, let now, _): now
    case .waits(let waiting): waiting.app
    }
  }
}

extension StoreAccess {
  /// Another version of an app that does not run.
  fileprivate func updated(
    _ bundle: FD, named name: String, for domain: AppDomain, allowingDowngrade: Bool
  ) throws -> UpdateOutcome {
    let done = try update(bundle, named: name, for: domain, allowingDowngrade: allowingDowngrade)
    return .updated(before: done.before, now: done.now, left: done.left)
  }
}
