// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula backup check`.
struct BackupCheckCommand: Command {
  static let description = CommandDescription(
    name: "backup check", summary: "Checks that the backups in the repository are whole.",
    options: [
      .init(name: "read-data", help: "read all of it, not only what describes it; this takes long")
    ] + BackupRepository.options,
    examples: ["insula backup check", "insula backup check --read-data"])

  private let readsData: Bool
  private let repository: BackupRepository.Named

  init(_ arguments: ParsedArguments) throws(UsageError) {
    readsData = arguments.has("read-data")
    repository = try BackupRepository.Named(arguments, Self.description)
  }

  func run(in context: Context) throws -> ExitCode {
    let restic = try Restic.opening(repository, context)
    let place = restic.repository.shown
    let outcome = try ProgressLine.show(context.console, { "checking \(place)" }) {
      try restic.run(["check"] + (readsData ? ["--read-data"] : []))
    }
    if !outcome.isDone {
      if let known = restic.knownFailure("check the backups", outcome) { throw known }
      throw CommandFailure(
        .problemsFound,
        "the repository \(place) is damaged; make a new one soon, and keep this one:",
        lines: outcome.complaints.suffix(10).map { "  restic: \($0)" })
    }
    context.console.say("The backups in \(place) are whole.")
    return .ok
  }
}
