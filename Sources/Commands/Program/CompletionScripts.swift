// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Completion scripts: each asks `insula completions SHELL --words` what may stand where a person is typing.
///
/// That prints a candidate to a line, a tab and what it means, or `:files` and its like for what the shell
/// knows itself. No script evaluates what it is told.
enum CompletionScripts {
  static let bash = #"""
    # Completion of insula for bash.
    _insula() {
      local line word found=()
      COMPREPLY=()
      mapfile -t found < <(
        command insula completions bash --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null
      )
      word=${COMP_WORDS[COMP_CWORD]}
      for line in "${found[@]}"; do
        case $line in
          :files) compopt -o default 2>/dev/null ;;
          :directories) compopt -o dirnames 2>/dev/null ;;
          :users) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -u -- "$word") ;;
          :groups) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -g -- "$word") ;;
          :programs) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -c -- "$word") ;;
          *)
            printf -v line %q "${line%%$'\t'*}"
            COMPREPLY+=("$line")
            ;;
        esac
      done
      case ${COMPREPLY[0]-} in *[=:,]) compopt -o nospace 2>/dev/null ;; esac
    }
    complete -F _insula insula

    """#

  static let zsh = #"""
    #compdef insula
    # Completion of insula for zsh.
    _insula() {
      local line word
      local -a found names shown open openshown
      found=("${(@f)$(command insula completions zsh --words "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
      for line in "${found[@]}"; do
        case $line in
          ('') ;;
          (:files) compset -P '--[a-z-]#='; _files ;;
          (:directories) compset -P '--[a-z-]#='; _files -/ ;;
          (:users) compset -P '--[a-z-]#='; _users ;;
          (:groups) compset -P '--[a-z-]#='; _groups ;;
          (:programs) _command_names -e ;;
          (*)
            word=${line%%$'\t'*}
            line=${line/$'\t'/  -- }
            if [[ $word == *[=:,] ]]; then
              open+=("$word") openshown+=("$line")
            else
              names+=("$word") shown+=("$line")
            fi
            ;;
        esac
      done
      (( $#names )) && compadd -l -d shown -a names
      (( $#open )) && compadd -S '' -l -d openshown -a open
    }
    compdef _insula insula

    """#

  static let fish = #"""
    # Completion of insula for fish.
    function __insula_complete
      set -l before (commandline -opc)
      set -l current (commandline -ct)
      set -l option (string match -r -- '^--[a-z-]+=' $current)
      set -l value (string replace -r -- '^--[a-z-]+=' '' $current)
      for line in (command insula completions fish --words $before[2..-1] "$current" 2>/dev/null)
        switch $line
          case ':files'
            printf "$option%s\n" (__fish_complete_path "$value")
          case ':directories'
            printf "$option%s\n" (__fish_complete_directories "$value" '')
          case ':users'
            printf "$option%s\n" (__fish_complete_users)
          case ':groups'
            printf "$option%s\n" (__fish_complete_groups)
          case ':programs'
            complete -C "$value"
          case '*'
            printf '%s\n' $line
        end
      end
    end
    complete -c insula -f -a '(__insula_complete)'

    """#
}
