// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// `insula completions`.
struct CompletionsCommand: Command {
  private static let shells = ["bash", "zsh", "fish"]

  static let description = CommandDescription(
    name: "completions", summary: "Prints what a shell needs to complete insula's commands.",
    arguments: [
      .init(name: "SHELL", help: "bash, zsh or fish", isRequired: true, kind: .word(shells))
    ],
    examples: ["source <(insula completions bash)", "insula completions fish | source"])

  private let shell: String

  init(_ arguments: ParsedArguments) throws(UsageError) {
    shell = arguments.argument(0) ?? ""
    guard Self.shells.contains(shell) else {
      throw Self.description.error("there are completions for bash, zsh and fish, not for '\(shell)'")
    }
  }

  func run(in context: Context) throws -> ExitCode {
    let text =
      switch shell {
      case "bash": Completions.bash()
      case "zsh": Completions.zsh()
      default: Completions.fish()
      }
    context.console.print(exactly: Array(text.utf8))
    return .ok
  }
}
