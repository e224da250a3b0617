// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// `insula backup list`.
struct BackupListCommand: Command {
  static let description = CommandDescription(
    name: "backup list", summary: "Lists the backups in the repository.",
    options: BackupRepository.options + [CommandDescription.json],
    examples: ["insula backup list", "insula backup list --repository /media/anna/disk/backup"])

  private let repository: BackupRepository.Named
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    repository = try BackupRepository.Named(arguments, Self.description)
    json = arguments.has("json")
  }

  /// A backup for programs.
  private struct Row: Encodable {
    let id: String
    let time: String
    let host: String
    let user: String?
    let paths: [String]
    let tags: [String]
  }

  func run(in context: Context) throws -> ExitCode {
    let snapshots = try Restic.opening(repository, context).snapshots()
    let rows = snapshots.map {
      Row(
        id: $0.id, time: $0.time, host: $0.hostname, user: $0.username, paths: $0.paths, tags: $0.tags ?? [])
    }
    context.console.print(
      list: rows, json: json, none: "There are no backups yet; 'insula backup now' makes one.",
      columns: ["ID", "TIME", "HOST", "USER", "WHAT"]
    ) { row in
      let apps = SnapshotTag.apps(row.tags)
      let what = apps.isEmpty ? row.paths.joined(separator: ", ") : apps.joined(separator: ", ")
      let time = String(
        String.UnicodeScalarView(row.time.unicodeScalars.prefix(19).map { $0 == "T" ? " " : $0 }))
      return [String(row.id.prefix(8)), time, row.host, row.user ?? "-", what]
    }
    return .ok
  }
}

extension Restic {
  /// The backups that are ours, the newest last.
  func snapshots() throws -> [ResticSnapshot] {
    try read(
      ["snapshots", "--json", "--tag", SnapshotTag.own], as: [ResticSnapshot]?.self, doing: "list the backups"
    ) ?? []
  }
}
