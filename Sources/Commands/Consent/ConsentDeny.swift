// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon

/// `insula consent deny`.
struct ConsentDenyCommand: Command {
  static let description = CommandDescription(
    name: "consent deny", summary: "Keeps an app from using what is private.",
    arguments: [ConsentWords.app, ConsentWords.argument("what it may not use (default: all services)")],
    options: GivenDecision.options,
    details: [
      """
      It holds at once for a running app too. The app is refused, and does not ask again.
      """,
      ConsentWords.list,
    ],
    examples: ["insula consent deny com.example.editor photos"])

  private let given: GivenDecision

  init(_ arguments: ParsedArguments) throws(UsageError) {
    given = try GivenDecision(arguments, for: Self.description)
  }

  func run(in context: Context) throws -> ExitCode { try given.decide(.deny, context) }
}
