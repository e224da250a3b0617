// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

/// `insula backup run`.
struct BackupRunCommand: Command {
  static let description = CommandDescription(
    name: "backup run", summary: "Runs a backup program in a read-only view of what is backed up.",
    arguments: [
      .init(
        name: "ID", help: "apps whose containers to back up alone (default: everything)", kind: .app,
        isRepeated: true),
      .init(
        name: "COMMAND", help: "any program with its arguments, after '--'", isRequired: true,
        kind: .program, isRepeated: true, mayBeEmpty: true, followsDashes: true),
    ],
    options: [
      .init(
        name: "user", value: "NAME",
        help: "back up this user's home (default: your own; for root the whole tree)",
        kind: .account),
      AppsAccess.storeOption,
    ],
    details: [
      """
      COMMAND sees the tree at the same path, and in it exactly what is to be backed up: no caches, temporary
      files, apps or the system domain, and nothing that is marked ('insula backup exclude'). It can't change
      anything there. The rest of the machine is as ever, so restic, borg, tar or rsync need no option for
      what to leave out. 'insula backup why FILE' says whether a file is backed up.
      """,
      """
      Files may change while they are read, as in any backup of a machine that is in use. The exit status is
      that of COMMAND; 127 if it can't be started.
      """,
    ],
    examples: [
      "insula backup run -- restic -r /backup/repository backup ~/Insula",
      "insula backup run com.example.notes -- tar -C ~/Insula -cf notes.tar .",
      "sudo insula backup run -- rsync -aAX /insula/ backup.example.org:insula/",
    ])

  private let apps: [AppReference]
  private let command: [String]
  private let user: String?
  private let store: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    guard let count = arguments.countBeforeDashes else {
      throw Self.description.error("write '--' before COMMAND: 'insula backup run -- restic backup ...'")
    }
    apps = try Self.description.apps(arguments.positional.prefix(count))
    command = Array(arguments.positional.dropFirst(count))
    guard let program = command.first else {
      throw Self.description.error("COMMAND is missing (any program with its arguments, after '--')")
    }
    if program.isEmpty { throw Self.description.error("COMMAND is empty") }
    user = arguments.value("user")
    store = arguments.value("store")
  }

  func run(in context: Context) throws -> ExitCode {
    let user = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    let apps = try apps.map { try access.identifier(of: $0, for: user) }
    var daemon = try access.runner()
    let before = try? FD.cwd.status(of: ".")
    try BackupView.enterNamespace()
    let mountPoint = daemon.mountPoint
    try BackupView.mount(at: mountPoint, BackupRequest(apps: apps, user: user), by: &daemon)
    try enterView(of: mountPoint, from: before, context)
    let error = Subprocess.become(command)
    context.console.note("can't run \(command[0].sanitized): \(error.message)")
    return .program(127)
  }

  /// Leaves the whole tree, if we stand in it, for the same directory in the view.
  ///
  /// Its path has no links in it; if it has by now, somebody leads us elsewhere.
  private func enterView(
    of mountPoint: String, from before: FileStatus?, _ context: Context
  ) throws(CommandFailure) {
    let path = context.currentDirectory
    guard "\(path)/".utf8.starts(with: "\(mountPoint)/".utf8) else { return }
    do throws(Errno) {
      let directory = try FD.cwd.openWithoutLinks(path, pathOnly | O_DIRECTORY)
      guard try directory.fd.status().st_ino == before?.st_ino else { throw .ENOENT }
      try check(fchdir(directory.fd.raw))
    } catch {
      throw CommandFailure(
        .failed,
        "the working directory \(path.sanitized) is not backed up; start the command in another one")
    }
  }
}
