// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Texts that are made from the descriptions of the verbs.
enum Help {
  /// What `insula help` prints.
  static func overview() -> String {
    let rows = Insula.commands.map { ($0.description.synopsis, $0.description.summary) }
    var text = """
      Insula gives a directory the order of an Apple file system: four domains, homes with their standard
      directories, and rules that hold for everyone. It is kept in a store and shown by a mount.

      Usage: insula COMMAND ...

      """
    for (synopsis, summary) in rows { text += "\n  \(synopsis)\n      \(summary)\n" }
    text += "\n'insula COMMAND --help' tells more of each. First steps: 'insula init', then 'insula mount'.\n"
    text += "\nExit codes:\n"
    for row in ExitCode.table { text += "  \(row.number)  \(row.meaning)\n" }
    return text
  }

  /// What `insula COMMAND --help` prints.
  static func text(for description: CommandDescription) -> String {
    var text = "\(description.summary)\n\nUsage: insula \(description.synopsis)\n"
    let arguments = ([description.change].compactMap(\.self) + description.arguments).map {
      ($0.name, $0.help)
    }
    let actions = description.actions.map { (([$0.word] + $0.values).joined(separator: " "), $0.help) }
    let options = description.options.filter { !$0.isHidden }.map { ($0.spelling, $0.help) }
    text += section("Arguments", arguments)
    text += section("Actions", actions)
    text += section("Options", options + [(description.helpSpellings.joined(separator: ", "), "print this")])
    for paragraph in description.details { text += "\n\(paragraph)\n" }
    if !description.examples.isEmpty {
      text += "\nExamples:\n" + description.examples.map { "  \($0)\n" }.joined()
    }
    return text
  }

  /// The table of commands that the README holds.
  static func markdownTable() -> String {
    var text = "| command | what it does |\n|---|---|\n"
    for command in Insula.commands {
      let synopsis = command.description.synopsis.replacing("|", with: "\\|")
      text += "| `insula \(synopsis)` | \(command.description.summary) |\n"
    }
    return text
  }

  /// The table of exit codes that the README holds.
  static func markdownExitCodes() -> String {
    var text = "| code | meaning |\n|---|---|\n"
    for row in ExitCode.table { text += "| \(row.number) | \(row.meaning) |\n" }
    return text
  }

  private static func section(_ title: String, _ rows: [(String, String)]) -> String {
    guard !rows.isEmpty else { return "" }
    let width = rows.map(\.0.count).max() ?? 0
    let lines = rows.map { name, help in
      "  \(name)\(String(repeating: " ", count: width - name.count + 2))\(help)\n"
    }
    return "\n\(title):\n" + lines.joined()
  }
}

/// `insula help`.
struct HelpCommand: Command {
  static let description = CommandDescription(
    name: "help", summary: "Says what insula can do.",
    arguments: [.init(name: "COMMAND", help: "tell more of this one", isRepeated: true)])

  private let words: [String]

  init(_ arguments: ParsedArguments) { words = arguments.positional }

  func run(in context: Context) throws -> ExitCode {
    guard let first = words.first else {
      context.console.print(text: Help.overview())
      return .ok
    }
    let verb = words.joined(separator: " ")
    let name = ([Insula.aliases[first] ?? first] + words.dropFirst()).joined(separator: " ")
    let found = Insula.commands.map { $0.description }.filter {
      $0.name == name || $0.name.hasPrefix(name + " ")
    }
    guard !found.isEmpty else {
      throw UsageError(message: "there is no command '\(verb)'; 'insula help' lists them all")
    }
    context.console.print(text: found.map(Help.text).joined(separator: "\n"))
    return .ok
  }
}

/// `insula version`.
struct VersionCommand: Command {
  static let description = CommandDescription(name: "version", summary: "Says which insula this is.")

  init(_ arguments: ParsedArguments) {}

  func run(in context: Context) throws -> ExitCode {
    context.console.print("insula \(Insula.version)")
    return .ok
  }
}
