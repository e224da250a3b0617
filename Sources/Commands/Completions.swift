// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Completion scripts, made from the descriptions of the verbs.
enum Completions {
  private static var all: [CommandDescription] { Insula.commands.map { $0.description } }

  /// The first words, and what may follow those that have a second one.
  private static var verbs: [String] {
    var verbs: [String] = []
    for description in all {
      let verb = String(description.name.prefix { $0 != " " })
      if !verbs.contains(verb) { verbs.append(verb) }
    }
    return verbs
  }

  private static func subverbs(of verb: String) -> [String] {
    all.compactMap { $0.name.hasPrefix(verb + " ") ? String($0.name.dropFirst(verb.count + 1)) : nil }
  }

  private static func options(_ description: CommandDescription) -> [String] {
    let visible = description.options.filter { !$0.isHidden }
    return visible.map { $0.name.count > 1 ? "--\($0.name)" : "-\($0.name)" } + ["--help"]
      + description.actions.map(\.word)
  }

  static func bash() -> String {
    var cases = ""
    for description in all {
      let kind: String =
        switch description.arguments.first?.kind {
        case .directory: "-d"
        case .file: "-f"
        case .account: "-u"
        case .word(let words): "-W '\(words.joined(separator: " "))'"
        case .other, nil: ""
        }
      cases += """
            '\(description.name)'*) options='\(options(description).joined(separator: " "))'; \
        arguments=(\(kind)) ;;

        """
    }
    for verb in verbs where !subverbs(of: verb).isEmpty {
      cases += "    \(verb)*) arguments=(-W '\(subverbs(of: verb).joined(separator: " "))') ;;\n"
    }
    return """
      # Completion of insula for bash.
      _insula() {
        local word=${COMP_WORDS[COMP_CWORD]} options='' arguments=()
        if [ "$COMP_CWORD" -eq 1 ]; then
          mapfile -t COMPREPLY < <(compgen -W '\(verbs.joined(separator: " "))' -- "$word")
          return
        fi
        local before="${COMP_WORDS[*]:1:COMP_CWORD-1}"
        case "$before" in
      \(cases)  esac
        if [[ $word == [-+=]* ]]; then
          mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
        elif [ "${#arguments[@]}" -gt 0 ]; then
          mapfile -t COMPREPLY < <(compgen "${arguments[@]}" -- "$word")
        fi
      }
      complete -o filenames -F _insula insula

      """
  }

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
      let words = (options + actions + ["'--help[print the help]'"] + arguments).joined(separator: " ")
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

  /// A word of a shell's, whatever is in it.
  private static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: "'\\''") + "'"
  }

  /// Fish knows two escapes between quotes.
  private static func fishQuoted(_ text: String) -> String {
    "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
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
