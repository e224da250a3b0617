// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

extension CompletionScripts {
  static func zsh() -> String {
    var cases = ""
    for description in all {
      let options = description.options.filter { !$0.isHidden }.map { option in
        let name = option.name.count > 1 ? "--\(option.name)" : "-\(option.name)"
        let value = option.value.map { ":\(escaped($0)):" } ?? ""
        return quoted("\(name)[\(escaped(option.help))]\(value)")
      }
      let arguments = description.arguments.map { argument in
        let action: String =
          switch argument.kind {
          case .directory: "_files -/"
          case .file: "_files"
          case .account: "_users"
          case .helpTopic: "(\(helpTopics.joined(separator: " ")))"
          case .word(let words): "(\(words.joined(separator: " ")))"
          case .other: ""
          }
        return quoted("\(argument.isRepeated ? "*" : ""):\(escaped(argument.name)):\(action)")
      }
      // Words that begin otherwise are none to _arguments.
      let actions = description.actions.filter { $0.word.hasPrefix("-") || $0.word.hasPrefix("+") }.map {
        action in
        quoted("\(action.word)[\(escaped(action.help))]\(action.values.map { ":\(escaped($0)): " }.joined())")
      }
      let words = (options + actions + ["'--help[print this help]'"] + arguments).joined(separator: " ")
      cases += "    '\(description.name)') _arguments \(words) ;;\n"
    }
    let lines = verbs.map { verb in
      let summary = all.first { $0.name == verb || $0.name.hasPrefix(verb + " ") }?.summary ?? ""
      return "      \(quoted("\(verb):\(escaped(summary))"))\n"
    }.joined()
    var seconds = ""
    for verb in verbs where !subverbs(of: verb).isEmpty {
      seconds += """
          if [[ $verb == \(verb) ]]; then
            if (( CURRENT == 3 )); then compadd \(subverbs(of: verb).joined(separator: " ")); return; fi
            verb="\(verb) ${words[3]}"
            shift words; (( CURRENT-- ))
          fi

        """
    }
    return """
      #compdef insula
      # Completion of insula for zsh.
      _insula() {
        local -a verbs
        verbs=(
      \(lines)  )
        if (( CURRENT == 2 )); then _describe command verbs; return; fi
        local verb=${words[2]}
      \(seconds)  shift words; (( CURRENT-- ))
        case $verb in
      \(cases)  esac
      }
      compdef _insula insula

      """
  }

  /// A word of a shell's, whatever is in it.
  private static func quoted(_ text: String) -> String {
    "'" + text.replacing(each: "'", by: "'\\''") + "'"
  }

  /// What zsh's `_arguments` and `_describe` take for a text, and not for the end of one.
  private static func escaped(_ text: String) -> String {
    var result = ""
    for character in text {
      if "\\:[]".contains(character) { result.append("\\") }
      result.append(character)
    }
    return result
  }
}
