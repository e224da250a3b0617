// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula version`.
struct VersionCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(name: "version", summary: "Prints the version.")

  init(_ arguments: ParsedArguments) {}

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    context.console.print("insula \(Insula.version)")
    return .ok
  }
}
