// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula backup off`.
struct BackupOffCommand: Command {
  static let description = CommandDescription(
    name: "backup off", summary: "Leaves an app's container out of backups.",
    arguments: BackupSwitch.arguments, options: BackupSwitch.options,
    details: [
      "Containers of groups, which other apps use too, and what the app keeps in iCloud are still backed up."
    ],
    examples: ["insula backup off com.example.game"])

  private let change: BackupSwitch

  init(_ arguments: ParsedArguments) throws(UsageError) {
    change = try BackupSwitch(arguments, Self.description)
  }

  func run(in context: Context) throws -> ExitCode { try change.set(isBackedUp: false, context) }
}
