// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula backup now`.
struct BackupNowCommand: Command {
  static let description = CommandDescription(
    name: "backup now", summary: "Makes a backup with restic: encrypted, and only of what has changed.",
    arguments: [
      .init(
        name: "ID", help: "apps whose containers to back up alone (default: everything)", kind: .app,
        isRepeated: true)
    ],
    options: BackupRepository.options + [
      .init(name: "with-apps", help: "put the apps themselves into it too, not only their data"),
      .init(name: "dry-run", short: "n", help: "say what would be backed up, and write nothing"),
      .init(
        name: "user", value: "NAME",
        help: "back up this user's home (default: your own; for root the whole tree)", kind: .account),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The backup contains what 'insula backup run' shows, and a manifest: which apps there were, and what they
      were allowed. SQLite databases of apps that run are each copied as of one moment first, into TMPDIR or
      /var/tmp. Other files may change while they are read, and files that belong together may be of different
      moments; one that its app replaces as a whole is always a whole one.
      """
    ],
    examples: ["insula backup now", "sudo insula backup now --quiet", "insula backup now com.example.notes"])

  private let apps: [AppReference]
  private let repository: BackupRepository.Named
  private let hasBundles: Bool
  private let isDryRun: Bool
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    apps = try Self.description.apps(arguments.positional)
    repository = try BackupRepository.Named(arguments, Self.description)
    hasBundles = arguments.has("with-apps")
    isDryRun = arguments.has("dry-run")
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let restic = try Restic(BackupRepository(repository, context), context)
    let user = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    let apps = try apps.map { try access.identifier(of: $0, for: user) }
    var daemon = try access.runner()
    let mountPoint = daemon.mountPoint
    try restic.repository.requireOutside(of: [mountPoint, context.absolute(daemon.store)])
    try restic.repository.requireThere()
    if !isDryRun { try restic.removeLeftLocks() }
    var known = try BackupManifest(access, store: daemon.store, user: user, only: apps)
    for omission in known.reduceToRoom() { context.console.note(omission.words) }
    let manifest = known
    try manifest.requireReadable()
    let keepsLinks = try restic.keepsLinks()
    let databases = try RunningDatabases(access, user: user, only: apps)
    let tags = SnapshotTag.all(apps, access.orOneself(user)).joined(separator: ",")
    // A process with several threads can't; and what is to be mounted once more must be opened in it.
    try BackupView.enterNamespace()
    func backUp(databasesIn place: FD?) throws -> ExitCode {
      let others = try BackupContents.mount(
        manifest, BackupRequest(apps: apps, user: user, encodesLinks: !keepsLinks),
        withBundlesOf: hasBundles ? access : nil,
        databases: place, by: &daemon)
      let treePath = "\(mountPoint)/\(BackupManifest.treeName)"
      if let place {
        let tree = try context.openDirectory(treePath)
        databases.copy(from: tree.fd, to: place)
      }
      let words =
        ["backup", "--json", "--tag", tags] + others.flatMap { ["--exclude", Restic.pattern($0)] }
        + (isDryRun ? ["--dry-run"] : []) + ["--", mountPoint]
      let report = BackupReport(
        context.console, dispensable: Set(databases.companions.map { "\(treePath)/\($0)" }))
      let outcome = try report.show { try restic.run(words, line: report.take, complaint: report.take) }
      let code = try report.end(restic, outcome, isDryRun: isDryRun, json: json)
      let changed = isDryRun ? [] : try manifest.othersNow(access)
      for container in changed {
        context.console.note(
          "while the backup was made, another app's container took the place of "
            + "\(container.identifier.sanitized) of \(container.home.sanitized), and this backup may have "
            + "what is in that; back up once more, and restore that app from the next backup")
      }
      return code == .ok && (databases.isIncomplete || !changed.isEmpty) ? .failed : code
    }
    if isDryRun || databases.isEmpty { return try backUp(databasesIn: nil) }
    let place = try UnpackingPlace(context, for: "backup")
    return try place.use { try backUp(databasesIn: place.directory) }
  }
}

/// What a snapshot's tags say: that it is one of ours, and of what.
enum SnapshotTag {
  static let own = "insula"
  private static let appPrefix = "app="
  private static let userPrefix = "user="

  /// Without a user it is everybody's.
  static func all(_ apps: [AppIdentifier], _ user: UInt32?) -> [String] {
    [own] + (user.map { [userPrefix + (Account.numbered($0)?.name ?? "\($0)")] } ?? [])
      + apps.map { appPrefix + $0.text }
  }

  /// Whose it is alone.
  static func user(_ tags: [String]) -> String? {
    tags.first { $0.hasPrefix(userPrefix) }.map { String($0.dropFirst(userPrefix.count)) }
  }

  /// The apps that it is of alone.
  static func apps(_ tags: [String]) -> [String] {
    tags.filter { $0.hasPrefix(appPrefix) }.map { String($0.dropFirst(appPrefix.count)) }
  }
}
