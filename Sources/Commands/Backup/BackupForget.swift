// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula backup forget`.
struct BackupForgetCommand: Command {
  static let description = CommandDescription(
    name: "backup forget", summary: "Deletes old backups, and frees their room in the repository.",
    options: [
      .init(name: "keep", value: "WHAT", help: "what to keep (default: backup.keep of the configuration)"),
      .init(name: "dry-run", short: "n", help: "say what would be deleted, and delete nothing"),
    ] + BackupRepository.options,
    details: [
      """
      WHAT is, for example, '\(BackupKeep.standard)'; the units are
      \(BackupKeep.unitWords). 'daily=7' keeps the last backup of each of the
      last seven days on which there was one, and so on. What one unit keeps, no other deletes. Backups of
      other machines, users and apps count apart. Snapshots that insula has not made are left alone.
      """
    ],
    examples: ["insula backup forget", "insula backup forget --keep last=3,monthly=6 --dry-run"])

  private let keep: BackupKeep?
  private let isDryRun: Bool
  private let repository: BackupRepository.Named

  init(_ arguments: ParsedArguments) throws(UsageError) {
    keep = try arguments.value("keep").map { (text) throws(UsageError) in
      guard let keep = BackupKeep(text) else {
        throw Self.description.error(
          "bad value of '--keep': '\(text)' is not \(BackupKeep.words); the units are \(BackupKeep.unitWords)"
        )
      }
      return keep
    }
    isDryRun = arguments.has("dry-run")
    repository = try BackupRepository.Named(arguments, Self.description)
  }

  func run(in context: Context) throws -> ExitCode {
    let restic = try Restic.opening(repository, context)
    guard let keep = keep ?? BackupKeep(context.ownValue(.backupKeep) ?? BackupKeep.standard) else {
      throw CommandFailure(.usage, "backup.keep of the configuration is not \(BackupKeep.words)")
    }
    let words =
      ["forget", "--json", "--tag", SnapshotTag.own, "--group-by", "host,paths,tags"] + keep.options
    if !isDryRun { try restic.removeLeftLocks() }
    let groups = try ProgressLine.show(context.console, { "deleting old backups" }) {
      let forgotten = try restic.read(
        words + (isDryRun ? ["--dry-run"] : []), as: [ResticForgotten]?.self, doing: "delete old backups")
      // By itself, since it prints no JSON.
      if !isDryRun { _ = try restic.text(["prune"], doing: "free the room of deleted backups") }
      return forgotten ?? []
    }
    let (kept, removed) = groups.reduce((0, 0)) { sum, group in
      (sum.0 + (group.keep?.count ?? 0), sum.1 + (group.remove?.count ?? 0))
    }
    let backups = removed == 1 ? "1 backup" : "\(removed) backups"
    context.console.say(
      isDryRun ? "This would delete \(backups) and keep \(kept)." : "Deleted \(backups), kept \(kept).")
    return .ok
  }
}
