// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

/// `insula backup export`.
struct BackupExportCommand: Command {
  static let description = CommandDescription(
    name: "backup export", summary: "Copies apps' data to a backup in the form of iTunes, not encrypted.",
    arguments: [
      .init(
        name: "DIR", help: "the directory to create, which must not exist or be empty", isRequired: true,
        kind: .directory),
      .init(name: "ID", help: "apps to copy (default: all that you have)", kind: .app, isRepeated: true),
    ],
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    details: [
      """
      The backup has what 'insula backup run' shows of the apps' containers and those of their groups, and
      nothing else of the home. Programs that read backups of iPhones can read it. DIR appears when it is
      complete.
      """,
      """
      Everybody who can read DIR can read the data. ACLs, flags and extended attributes are in the list of
      files, Manifest.db. Names that are not UTF-8 can't be in such a backup.
      """,
    ],
    examples: ["insula backup export ~/phone-backup", "insula backup export ~/notes com.example.notes"],
    becomesUser: true)

  private let target: String
  private let apps: [AppReference]
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    target = arguments.argument(0) ?? ""
    apps = try Self.description.apps(arguments.positional.dropFirst())
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  /// For programs.
  private struct Report: Codable {
    let path: String
    let containers: [ITunesExport.Part]
    let omissions: [DataCopy.Omission]
  }

  func run(in context: Context) throws -> ExitCode {
    if let done = try ActingCommand.onMount(
      of: store, for: user, context,
      {
        ["backup", "export", "--store", $0] + (json ? ["--json"] : []) + ["--", context.absolute(target)]
          + apps.map(\.text)
      })
    {
      return done
    }
    let user = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, writing: true, context)
    let owner = user ?? context.uid
    let identifiers =
      try apps.isEmpty
      ? access.apps(for: owner).compactMap { AppIdentifier($0.identifier) }
      : apps.map { try access.identifier(of: $0, for: user) }
    let found = try identifiers.map { try access.app($0, for: owner) }
    let home = try access.home(of: owner)
    let (parent, name) = try context.unresolved(target).splitAtFile()
    let directory = try context.openDirectoryToMake(in: parent)
    let tree = try access.openTree(for: user)
    let device = BackupDevice(
      name: hostName() ?? "Insula", home: "\(access.root)/\(home)", now: context.now())
    let (parts, omissions) = try CopyProgress.show("exporting", context.console) { note in
      try ITunesExport(tree: tree.directory.fd, access: tree.access, device: device, progress: note) { app in
        guard let identifier = AppIdentifier(app.identifier),
          let now = try? access.app(identifier, for: owner)
        else { return false }
        return BackupTeam(of: now) == BackupTeam(of: app)
          && (app.containers ?? []).allSatisfy { noted in (now.containers ?? []).contains(noted) }
      }
      .write(found, to: name, in: directory.fd, at: parent)
    }
    if json {
      context.console.print(
        json: Report(
          path: context.absolute(target), containers: parts, omissions: omissions))
      return .ok
    }
    for part in parts where part.isLeftOut {
      context.console.note("\(part.domain): nothing was copied, because it is marked ('insula backup off')")
    }
    for omission in omissions { context.console.note("\(omission.path): \(omission.reason)") }
    let files = parts.reduce(0) { $0 + $1.files }
    let bytes = parts.reduce(Int64(0)) { $0.adding(clamped: $1.bytes) }
    let count = parts.count { !$0.isLeftOut }
    context.console.say(
      "Exported \(count) container\(count == 1 ? "" : "s") to \(target) "
        + "(\(files) \(files == 1 ? "file" : "files"), \(bytes) bytes).")
    return .ok
  }
}
