// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension CompletionScripts {
  static func bash() -> String {
    var cases = ""
    for description in all {
      let kind: String =
        switch description.arguments.first?.kind {
        case .directory: "-d"
        case .file: "-f"
        case .account: "-u"
        case .helpTopic: "-W '\(helpTopics.joined(separator: " "))'"
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
}
