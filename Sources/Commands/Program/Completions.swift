// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// `insula completions`.
struct CompletionsCommand: Command {
  static let worksInApps = true
  private static let shells = ["bash", "zsh", "fish"]

  static let description = CommandDescription(
    name: "completions", summary: "Prints a completion script for a shell.",
    arguments: [
      .init(name: "SHELL", help: "bash, zsh or fish", isRequired: true, kind: .word(shells))
    ],
    options: [
      .init(
        name: "words", value: "WORD...", help: "print what may stand in place of the last word",
        takesRest: true, isHidden: true)
    ],
    details: [
      """
      The script asks insula what may stand where you are typing: commands, options and their values, apps,
      identities. Apps and identities whose names a shell might not take as they are are left out.
      """
    ],
    examples: ["source <(insula completions bash)", "insula completions fish | source"])

  private let shell: String
  private let words: [String]?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    shell = arguments.argument(0) ?? ""
    words = arguments.has("words") ? arguments.allValues("words") : nil
    guard Self.shells.contains(shell) else {
      let suggestion = Suggestion.text(for: shell, among: Self.shells)
      throw Self.description.error(
        "there are no completions for '\(shell)'\(suggestion), only for bash, zsh and fish")
    }
  }

  var goesByConfiguration: Bool { false }

  func run(in context: Context) throws -> ExitCode {
    if let words {
      complete(words, context)
      return .ok
    }
    let text =
      switch shell {
      case "bash": CompletionScripts.bash
      case "zsh": CompletionScripts.zsh
      default: CompletionScripts.fish
      }
    context.console.print(exactly: Array(text.utf8))
    return .ok
  }

  private func complete(_ words: [String], _ context: Context) {
    // A daemon or a disk that does not answer must not keep a person from typing.
    context.endAfter(1)
    let completion = Completion(shell == "bash" ? Self.joined(words) : words)
    // Bash replaces only what stands behind the equals sign.
    let hidden = shell == "bash" ? completion.prefix : ""
    func offer(_ candidates: [Completion.Candidate]) {
      for candidate in candidates {
        let help = candidate.help.isEmpty ? "" : "\t" + candidate.help
        offer(line: candidate.word.dropFirst(hidden.count) + help)
      }
    }
    func offer(line: some StringProtocol) {
      context.console.print(exactly: Array(line.utf8) + [UInt8(ascii: "\n")])
    }
    // What is known is printed before anyone is asked.
    offer(completion.candidates)
    if let directive = Self.directive(completion.kind) { offer(line: directive) }
    offer(completion.values(context))
  }

  /// What the shell is to offer itself.
  private static func directive(_ kind: ValueKind) -> String? {
    switch kind {
    case .file: ":files"
    case .directory: ":directories"
    case .account: ":users"
    case .group: ":groups"
    case .program: ":programs"
    default: nil
    }
  }

  /// The words of bash, which takes an equals sign for a word of its own and leaves quotes where they are.
  private static func joined(_ words: [String]) -> [String] {
    var result: [String] = []
    for word in words.map({ $0.replacing(each: "\\", by: "") }) {
      if word == "=", let last = result.last, last.hasPrefix("--") {
        result[result.count - 1] = last + "="
      } else if let last = result.last, last.hasPrefix("--"), last.hasSuffix("=") {
        result[result.count - 1] = last + word
      } else {
        result.append(word)
      }
    }
    return result
  }
}
