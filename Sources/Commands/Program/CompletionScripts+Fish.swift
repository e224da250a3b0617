// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

extension CompletionScripts {
  static func fish() -> String {
    var text = "# Completion of insula for fish.\ncomplete -c insula -f\n"
    for verb in verbs {
      let summary = all.first { $0.name == verb || $0.name.hasPrefix(verb + " ") }?.summary ?? ""
      text += "complete -c insula -n __fish_use_subcommand -a \(verb) -d \(fishQuoted(summary))\n"
    }
    for description in all {
      let words = description.name.split(separator: " ")
      let condition = words.map { "__fish_seen_subcommand_from \($0)" }.joined(separator: "; and ")
      if words.count == 2 {
        text += "complete -c insula -n '__fish_seen_subcommand_from \(words[0])' -a \(words[1])\n"
      }
      for option in description.options where !option.isHidden {
        let name = option.name.count > 1 ? "-l \(option.name)" : ""
        let short = option.short.map { "-s \($0)" } ?? ""
        let value = option.value == nil ? "" : "-r"
        let parts = [
          "complete -c insula -n '\(condition)'", name, short, value, "-d \(fishQuoted(option.help))",
        ]
        text += parts.filter { !$0.isEmpty }.joined(separator: " ") + "\n"
      }
      let candidates: String? =
        switch description.arguments.first?.kind {
        case .directory: "(__fish_complete_directories)"
        case .file: "(__fish_complete_path)"
        case .account: "(__fish_complete_users)"
        case .helpTopic: helpTopics.joined(separator: " ")
        case .word(let words): words.joined(separator: " ")
        case .other, nil: nil
        }
      for action in description.actions {
        text += "complete -c insula -n '\(condition)' -a '\(action.word)' -d \(fishQuoted(action.help))\n"
      }
      if let candidates { text += "complete -c insula -n '\(condition)' -a '\(candidates)'\n" }
    }
    return text
  }

  /// Fish knows two escapes between quotes.
  private static func fishQuoted(_ text: String) -> String {
    "'" + text.replacing(each: "\\", by: "\\\\").replacing(each: "'", by: "\\'") + "'"
  }
}
