// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula backup exclude`.
struct BackupExcludeCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "backup exclude", summary: "Leaves files, or directories with all that is in them, out of backups.",
    arguments: [
      .init(name: "FILE", help: "what to leave out", isRequired: true, kind: .file, isRepeated: true)
    ],
    details: [
      """
      It sets the attributes that other programs know too: Apple's
      (user.com.apple.metadata:com_apple_backup_excludeItem) and freedesktop.org's
      (user.xdg.robots.backup=false). A program that saves a file by replacing it takes them away.
      """
    ],
    examples: ["insula backup exclude ~/Insula/Users/anna/Movies"])

  private let paths: [String]

  init(_ arguments: ParsedArguments) throws(UsageError) { paths = arguments.positional }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    MarkedFile.forEach(paths, context) { (file) throws(CommandFailure) in try file.exclude() }
  }
}
