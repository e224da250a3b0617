// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// `insula backup import`.
struct BackupImportCommand: Command {
  static let description = CommandDescription(
    name: "backup import", summary: "Replaces apps' data by those of a backup in the form of iTunes.",
    arguments: [
      .init(name: "DIR", help: "the backup, which must not be encrypted", isRequired: true, kind: .directory),
      .init(
        name: "ID", help: "apps whose data to import (default: all in the backup)", kind: .app,
        isRepeated: true),
    ],
    options: [
      .init(
        name: "replace",
        help: "replace the apps' present data, if there is any; it can be restored for some days"),
      AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The apps must be installed, and must not be running. For each app either all of the data is replaced,
      in one step, or nothing is. Apps that are not installed are skipped and named, and the exit status is 1.
      """,
      """
      The containers of the apps' groups are imported too. The rest of a home or of a phone is not. An app
      gets data only if its team is the one that the backup names. If it names none, as backups of other
      programs, a group's data are imported only for apps that ID names.
      """,
    ],
    examples: ["insula backup import ~/phone-backup com.example.notes --replace"],
    becomesUser: true)

  private let source: String
  private let apps: [AppReference]
  private let replaces: Bool
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    source = arguments.argument(0) ?? ""
    apps = try Self.description.apps(arguments.positional.dropFirst())
    replaces = arguments.has("replace")
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  /// What came of the data of one app or group, for programs.
  private struct Outcome: Codable {
    let name: String
    var isImported = false
    var files = 0
    var links = 0
    var bytes: Int64 = 0
    var omissions: [DataCopy.Omission] = []
    /// Why it was not imported.
    var reason: String?
  }

  func run(in context: Context) throws -> ExitCode {
    if let done = try ActingCommand.onMount(
      of: store, for: user, context,
      {
        ["backup", "import", "--store", $0] + (replaces ? ["--replace"] : []) + (json ? ["--json"] : [])
          + ["--", context.absolute(source)] + apps.map(\.text)
      })
    {
      return done
    }
    let user = try AppsAccess.user(user, context)
    let directory = try context.openDirectory(source)
    let backup = try ITunesBackup(directory.fd, path: source)
    let access = try AppsAccess.find(store, writing: true, context)
    let wanted = try apps.map { try access.identifier(of: $0, for: user) }
    let installed = try access.apps(for: user ?? context.uid)
    var outcomes: [Outcome] = []
    func note(_ words: String, _ body: () throws -> DataReport) {
      var outcome = Outcome(name: words)
      do {
        let report = try body()
        (outcome.isImported, outcome.files, outcome.links) = (true, report.count.files, report.count.links)
        outcome.bytes = report.count.bytes
        outcome.omissions = report.omissions
        if !json {
          report.tell(context.console)
          context.console.say("Imported the data of \(words) (\(report.words)).")
        }
      } catch {
        let message = CommandFailure(error).message
        outcome.reason = message
        if !json { context.console.note("\(words): \(message)") }
      }
      outcomes.append(outcome)
    }
    for identifier in wanted.isEmpty ? backup.apps : wanted {
      note("\(identifier)") {
        // The backup may spell it otherwise than the app that is installed.
        let spelled = backup.apps.first { $0 == identifier }
        guard let spelled = spelled ?? backup.apps.first(where: { $0.isSame(as: identifier) }) else {
          throw CommandFailure(.failed, "\(source) has no data of this app; nothing was changed")
        }
        let app = try self.installed(identifier, user ?? context.uid, access)
        try access.requireEnded(identifier, for: user ?? context.uid)
        if let team = backup.team(ofApp: spelled) { try Self.require(team, of: app) }
        return try copy(backup, of: spelled, to: access.container(of: app, for: user), access)
      }
    }
    for group in backup.groups {
      let members = installed.filter { app in
        app.groups.contains(group.text)
          && (wanted.isEmpty
            || wanted.contains { AppIdentifier(app.identifier)?.isSame(as: $0) == true })
      }
      let team = backup.team(ofGroup: group)
      let member = members.first { team?.includes($0) ?? true } ?? members.first
      if member == nil, !wanted.isEmpty { continue }
      note("\(group)") {
        guard let member else {
          throw CommandFailure(
            .failed, "no app of this group is installed; install one first ('insula install')")
        }
        try requireTeam(of: group, in: backup, for: member, isNamed: !wanted.isEmpty)
        return try copy(
          backup, of: group, to: access.container(ofGroup: group, in: member, for: user), access)
      }
    }
    if json { context.console.print(json: outcomes) }
    if outcomes.isEmpty {
      throw CommandFailure(.failed, "\(source) has no data of apps; nothing was changed")
    }
    if backup.hasOthers, !json, wanted.isEmpty {
      context.console.note("\(source) also has data that are no app's, which are not imported")
    }
    return outcomes.allSatisfy(\.isImported) ? .ok : .failed
  }

  /// A backup of another program does not say whose a group's data are: then a person says who gets them.
  private func requireTeam(
    of group: AppIdentifier, in backup: ITunesBackup, for member: AppDescription, isNamed: Bool
  ) throws {
    if let team = backup.team(ofGroup: group) { return try Self.require(team, of: member) }
    guard isNamed else {
      throw CommandFailure(
        .failed,
        "the backup does not say which team's apps this group belongs to; if its data are for "
          + "\(member.identifier.sanitized), of the team \(member.team.sanitized), name that app: "
          + "'insula backup import \(source.sanitized) \(member.identifier.sanitized)'")
    }
  }

  /// Throws if an app is of another team than the one whose data a backup has.
  private static func require(_ team: BackupTeam, of app: AppDescription) throws {
    if team.includes(app) { return }
    throw CommandFailure(
      .failed,
      "the backup has data of apps of the team \(team.text.sanitized), but the app that is installed, "
        + "\(app.identifier.sanitized), is signed by another team, \(app.team.sanitized)")
  }

  /// The app whose container gets the data.
  private func installed(
    _ identifier: AppIdentifier, _ user: UInt32, _ access: any StoreAccess
  ) throws -> AppDescription {
    do {
      return try access.app(identifier, for: user)
    } catch StoreError.noApp {
      throw CommandFailure(
        .failed,
        "it is not installed, so its data were not imported; install it first ('insula install'), "
          + "and run 'insula backup import \(source.sanitized) \(identifier)'")
    }
  }

  private func copy(
    _ backup: ITunesBackup, of identifier: AppIdentifier, to container: AppContainer,
    _ access: any StoreAccess
  ) throws -> DataReport {
    try CopyProgress.show("importing", access.context.console) { note in
      try container.importData(from: backup, of: identifier, replacing: replaces, progress: note) { new in
        try access.replaceData(with: new)
      }
    }
  }
}
