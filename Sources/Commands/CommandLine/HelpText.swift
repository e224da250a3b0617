// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Texts that are made from the descriptions of the verbs.
enum HelpText {
  /// What `insula help` prints: it fits a screen of 24 lines.
  static func overview() -> String {
    let width = (Insula.groups.map(\.title.count).max() ?? 0) + 2
    let rows = Insula.groups.map { group in
      wrapped(group.names, with: ",", after: "  " + padded(group.title, width))
    }
    return """
      Insula gives a machine the file system organization of Apple's platforms.
      Usage: insula COMMAND ...

      \(rows.joined(separator: "\n"))

      'insula COMMAND --help' describes a command, and 'insula help TOPIC' a topic:
      \(HelpTopic.all.map(\.name).joined(separator: ", ")).
      'man insula' is the manual. To begin: 'insula init', then 'insula mount'.

      """
  }

  /// All commands with a line about each.
  static func commands() -> String {
    Insula.commands.map { "  \($0.description.synopsis)\n      \($0.description.summary)\n" }.joined()
  }

  /// Terms and what they mean, in two columns.
  static func table(_ rows: [(term: String, text: String)]) -> String {
    let column = min((rows.map(\.term.count).max() ?? 0) + 4, 32)
    let rows = rows.map { row in
      let start = "  \(row.term)"
      let words = row.text.parts(between: " ").map(String.init)
      let isShort = start.count + 2 <= column
      let text = wrapped(words, after: isShort ? padded(start, column) : padded("", column))
      return (isShort ? "" : start + "\n") + text
    }
    return rows.joined(separator: "\n")
  }

  private static func padded(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  /// Words in lines of at most 80 columns, the first after `start` and the others below it.
  private static func wrapped(_ words: [String], with comma: String = "", after start: String) -> String {
    var lines = [start]
    var isEmpty = true
    for (index, bare) in words.enumerated() {
      let line = lines[lines.count - 1]
      let word = index < words.count - 1 ? bare + comma : bare
      if !isEmpty, line.count + 1 + word.count > 79 {
        lines.append(padded("", start.count) + word)
      } else {
        lines[lines.count - 1] = line + (isEmpty ? "" : " ") + word
        isEmpty = false
      }
    }
    return lines.joined(separator: "\n")
  }

  /// The words of a synopsis; what is in brackets is not torn apart.
  private static func units(of synopsis: String) -> [String] {
    var units: [String] = []
    for word in synopsis.parts(between: " ") {
      if let open = units.last, open.hasPrefix("["), !open.hasSuffix("]") {
        units[units.count - 1] += " \(word)"
      } else {
        units.append(String(word))
      }
    }
    return units
  }

  /// What `insula COMMAND --help` prints.
  static func text(for description: CommandDescription) -> String {
    let usage = wrapped(units(of: description.synopsis), after: "Usage: insula ")
    var text = "\(description.summary)\n\n\(usage)\n"
    let arguments = ([description.change].compactMap(\.self) + description.arguments).map {
      ($0.name, $0.help)
    }
    let actions = description.actions.map { (([$0.word] + $0.values).joined(separator: " "), $0.help) }
    let options = description.options.filter { !$0.isHidden }.map { ($0.spelling, $0.help) }
    text += section("Arguments", arguments)
    text += section("Actions", actions)
    let general = CommandDescription.general.map { ($0.spelling, $0.help) }
    let help = (description.helpSpellings.joined(separator: ", "), "print this help")
    text += section("Options", options + general + [help])
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
