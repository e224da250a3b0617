// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula help`.
struct HelpCommand: Command {
  static let description = CommandDescription(
    name: "help", summary: "Shows help.",
    arguments: [.init(name: "COMMAND", help: "show help for this command", isRepeated: true)])

  private let words: [String]

  init(_ arguments: ParsedArguments) { words = arguments.positional }

  func run(in context: Context) throws -> ExitCode {
    guard let first = words.first else {
      context.console.print(text: HelpText.overview())
      return .ok
    }
    let verb = words.joined(separator: " ")
    let name = ([Insula.aliases[first] ?? first] + words.dropFirst()).joined(separator: " ")
    let found = Insula.commands.map { $0.description }.filter {
      $0.name == name || $0.name.hasPrefix(name + " ")
    }
    guard !found.isEmpty else {
      throw UsageError(message: "there is no command '\(verb)'; 'insula help' lists all commands")
    }
    context.console.print(text: found.map(HelpText.text).joined(separator: "\n"))
    return .ok
  }
}
