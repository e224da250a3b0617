// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// `insula backup init`.
struct BackupInitCommand: Command {
  static let description = CommandDescription(
    name: "backup init", summary: "Creates a repository for backups, and notes it in the configuration.",
    arguments: [
      .init(
        name: "REPOSITORY", help: "a directory on another disk, or an address that restic knows",
        isRequired: true, kind: .directory)
    ],
    options: Array(BackupRepository.options.dropFirst()),
    details: [
      """
      Backups are made by restic, which encrypts them. The address of a server begins with sftp:, rest:, s3:,
      b2:, rclone: or another word of restic's. A repository that is there already is used as it is.
      """,
      """
      Without an option you are asked for the password each time; a timer needs one of them. Without the
      password nobody can read the backups: keep a copy of it elsewhere.
      """,
    ],
    examples: [
      "insula backup init /media/anna/disk/backup --password-file ~/.config/insula/backup-password",
      "sudo insula backup init sftp:backup@example.org:insula --password-file /etc/insula/backup-password",
    ])

  private let address: String
  private let repository: BackupRepository.Named

  init(_ arguments: ParsedArguments) throws(UsageError) {
    let address = arguments.argument(0) ?? ""
    guard !address.isEmpty else { throw Self.description.error("REPOSITORY is empty") }
    var repository = try BackupRepository.Named(arguments, Self.description)
    repository.address = address
    (self.address, self.repository) = (address, repository)
  }

  func run(in context: Context) throws -> ExitCode {
    let repository = try BackupRepository(repository, context, isNew: true)
    try repository.requireOutside(of: [])
    let restic = try Restic(repository, context)
    let created = try restic.run(["init"])
    if !created.isDone {
      // What is there is ours if the password fits.
      let opened = try restic.run(["cat", "config"])
      guard opened.isDone else {
        let isOther = restic.hasWrongPassword(opened)
        throw restic.failure("create the repository", isOther ? opened : created)
      }
      context.console.say("The repository \(repository.shown) was there already.")
    } else {
      context.console.say("Created the repository \(repository.shown).")
    }
    try note(repository, context)
    return .ok
  }

  /// Notes it for the commands to come.
  private func note(_ repository: BackupRepository, _ context: Context) throws {
    var lines = ["repository = \(repository.address ?? "")"]
    switch repository.password {
    case .file(let path): lines.append("password-file = \(path)")
    case .command(let command): lines.append("password-command = \(command)")
    case .environment, .typed: break
    }
    let file = ConfigurationFile.own(context) ?? .machines(context)
    switch try file.add(section: .backup, lines) {
    case .added: context.console.say("It is noted in \(file.path); 'insula backup now' makes a backup.")
    case .isThere: break
    case .isOther(let why):
      context.console.note(
        "\(file.path) was not changed: \(why); for this repository to be used, it must say:",
        (["[backup]"] + lines).map { "  \($0)" })
    }
  }
}
