// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula completions`.
struct CompletionsCommand: Command {
  private static let shells = ["bash", "zsh", "fish"]

  static let description = CommandDescription(
    name: "completions", summary: "Prints a completion script for a shell.",
    arguments: [
      .init(name: "SHELL", help: "bash, zsh or fish", isRequired: true, kind: .word(shells))
    ],
    examples: ["source <(insula completions bash)", "insula completions fish | source"])

  private let shell: String

  init(_ arguments: ParsedArguments) throws(UsageError) {
    shell = arguments.argument(0) ?? ""
    guard Self.shells.contains(shell) else {
      throw Self.description.error("there are no completions for '\(shell)', only for bash, zsh and fish")
    }
  }

  func run(in context: Context) throws -> ExitCode {
    let text =
      switch shell {
      case "bash": CompletionScripts.bash()
      case "zsh": CompletionScripts.zsh()
      default: CompletionScripts.fish()
      }
    context.console.print(exactly: Array(text.utf8))
    return .ok
  }
}
