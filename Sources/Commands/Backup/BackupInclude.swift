// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula backup include`.
struct BackupIncludeCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "backup include", summary: "Backs up again what was left out.",
    arguments: [
      .init(name: "FILE", help: "what to back up again", isRequired: true, kind: .file, isRepeated: true)
    ],
    details: [
      """
      It takes away the attributes that 'insula backup exclude' and other programs set. What is in a directory
      that is left out, or in a place that is never backed up, stays out: see 'insula backup why'.
      """
    ],
    examples: ["insula backup include ~/Insula/Users/anna/Movies"])

  private let paths: [String]

  init(_ arguments: ParsedArguments) throws(UsageError) { paths = arguments.positional }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    MarkedFile.forEach(paths, context) { (file) throws(CommandFailure) in try file.include() }
  }
}
