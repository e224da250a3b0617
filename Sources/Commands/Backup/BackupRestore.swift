// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula backup restore`.
struct BackupRestoreCommand: Command {
  static let description = CommandDescription(
    name: "backup restore", summary: "Brings back apps, their data and other files from a backup.",
    arguments: [
      .init(
        name: "SNAPSHOT|ID",
        help: "which backup (default: the latest), and apps whose data to restore alone", kind: .app,
        isRepeated: true)
    ],
    options: [
      .init(name: "replace", help: "replace what is there without asking"),
      .init(
        name: "bundles", value: "DIR", help: "install missing apps from this directory", kind: .directory),
      .init(name: "rights", help: "also give apps the grants and consents that they had"),
      .init(
        name: "from", value: "DIR", help: "a backup that another program has brought back there",
        kind: .directory),
      .init(
        name: "to", value: "STORE", help: "the store, or its mount point (default: as for other commands)",
        kind: .directory),
      .init(
        name: "user", value: "NAME",
        help: "restore this user's home; root only (default: all; with --from what all share)",
        kind: .account),
    ] + BackupRepository.options,
    details: [
      """
      Apps come first, then what is in their containers, then other files. An app's data are replaced as a
      whole, in one step; caches stay empty. Of other files, those in the backup replace those of the same
      name, and all others stay. Stopped at any time, each is as it was or as it is in the backup. There must
      be room for another copy in $TMPDIR (otherwise /var/tmp).
      """
    ],
    examples: ["insula backup restore", "insula backup restore 79766175 com.example.notes"],
    becomesUser: true)

  private let snapshot: String?
  private var choice = HomeRestore.Choice()
  private let source: String?
  private let store: String?
  private let user: String?
  private let repository: BackupRepository.Named

  init(_ arguments: ParsedArguments) throws(UsageError) {
    var words = arguments.positional[...]
    snapshot = words.first.flatMap { Self.isSnapshot($0) ? $0 : nil }
    if snapshot != nil { words = words.dropFirst() }
    choice.apps = try Self.description.apps(words)
    choice.bundles = arguments.value("bundles")
    choice.replaces = arguments.has("replace")
    choice.withRights = arguments.has("rights")
    source = arguments.value("from")
    store = arguments.value("to")
    user = arguments.value("user")
    repository = try BackupRepository.Named(arguments, Self.description)
    if source != nil, snapshot != nil || repository.address != nil {
      throw Self.description.error("'--from' can't be combined with SNAPSHOT or '--repository'")
    }
  }

  /// What restic calls snapshots; an app's name that looks like that must be written as its identifier.
  private static func isSnapshot(_ word: String) -> Bool {
    word == "latest" || ((4...64).contains(word.utf8.count) && word.utf8.allSatisfy(\.isLowercaseHexadecimal))
  }

  func run(in context: Context) throws -> ExitCode {
    let account = try ActingCommand.account(user, context)
    if let source {
      if let done = try ActingCommand.onMount(of: store, for: user, context, { words(source, $0, context) }) {
        return done
      }
      HelperProcess.refuseTracers()
      let backup = try RestoredBackup(source, context)
      RestoredDatabases.putInPlace(in: backup.directory.fd, at: source, context)
      if context.isRoot, user == nil, choice.apps.isEmpty { return try restoreShared(backup, context) }
      return try restore(backup, ofAnybody: true, context)
    }
    let restic = try Restic.opening(repository, context)
    let name = Account.numbered(account?.uid ?? context.uid)?.name ?? "\(context.uid)"
    let owner: SnapshotRestore.Owner = context.isRoot && account == nil ? .everybody : .user(name)
    let snapshot = try SnapshotRestore(restic, snapshot, of: owner, choice.apps, context)
    guard context.isRoot else {
      return try snapshot.bringBack { _, path in
        try restore(RestoredBackup(path, context), ofAnybody: snapshot.isNamed, context)
      }
    }
    let mountPoint = try DaemonSearch.require(store, context).status.mountPoint
    let everything = EverythingRestore(
      snapshot: snapshot, choice: choice, mountPoint: mountPoint, context: context)
    try everything.ask()
    guard let account else { return try everything.run { words($0, mountPoint, context) } }
    let home = try AppsAccess.find(mountPoint, context).home(of: account.uid)
    return try everything.restore(home: home, of: account) { words($0, mountPoint, context) }
  }

  /// Restores what all users share, as root alone may.
  private func restoreShared(_ backup: RestoredBackup, _ context: Context) throws -> ExitCode {
    if !choice.replaces { try HomeRestore.askForAll(context) }
    let mountPoint = try DaemonSearch.require(store, context).status.mountPoint
    let access = try AppsAccess.find(mountPoint, context)
    return try SharedRestore(
      backup: backup, access: access, bundles: choice.bundles, mountPoint: mountPoint
    ).run()
  }

  /// Restores the home of whoever runs this.
  ///
  /// What another user had comes into a home only if the backup was named.
  private func restore(
    _ backup: RestoredBackup, ofAnybody isOfAnybody: Bool, _ context: Context
  ) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    _ = try access.runner()
    let own = try access.home(of: context.uid).splitAtName.name
    let homes = backup.homes
    guard
      let name = homes.contains(where: { $0.hasSameBytes(as: own) })
        ? own : homes.count == 1 && isOfAnybody ? homes.first : nil
    else {
      throw CommandFailure(
        .failed, "the backup has no home called \(own.sanitized)",
        lines: homes.map { "  it has that of \($0.sanitized)" })
    }
    return try HomeRestore(backup: backup, name: name, access: access, choice: choice).run()
  }

  /// The command that a user carries out whom root names.
  private func words(_ source: String, _ mountPoint: String, _ context: Context) -> [String] {
    ["backup", "restore", "--from", source, "--to", mountPoint, "--replace"]
      + (choice.withRights ? ["--rights"] : [])
      + (choice.bundles.map { ["--bundles", context.absolute($0)] } ?? []) + ["--"] + choice.apps.map(\.text)
  }
}
