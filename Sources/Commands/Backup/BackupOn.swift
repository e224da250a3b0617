// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula backup on`.
struct BackupOnCommand: Command {
  static let description = CommandDescription(
    name: "backup on", summary: "Backs up an app's container again.",
    arguments: BackupSwitch.arguments, options: BackupSwitch.options,
    examples: ["insula backup on com.example.game"])

  private let change: BackupSwitch

  init(_ arguments: ParsedArguments) throws(UsageError) {
    change = try BackupSwitch(arguments, Self.description)
  }

  func run(in context: Context) throws -> ExitCode { try change.set(isBackedUp: true, context) }
}
