// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Texts that are made from the descriptions of the verbs.
enum HelpText {
  /// What `insula help` prints.
  static func overview() -> String {
    let rows = Insula.commands.map { ($0.description.synopsis, $0.description.summary) }
    var text = """
      Insula gives a machine the file system organization of Apple's platforms: four domains, homes with
      standard directories, and rules that apply to everyone. Data is in a store; a mount shows its tree.

      Usage: insula COMMAND ...

      """
    for (synopsis, summary) in rows { text += "\n  \(synopsis)\n      \(summary)\n" }
    text += "\n'insula COMMAND --help' describes a command. To begin: 'insula init', then 'insula mount'.\n"
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
    text += section(
      "Options", options + [(description.helpSpellings.joined(separator: ", "), "print this help")])
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
