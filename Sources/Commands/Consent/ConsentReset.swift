// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon

/// `insula consent reset`.
struct ConsentResetCommand: Command {
  static let description = CommandDescription(
    name: "consent reset", summary: "Forgets what was decided: the app asks again.",
    arguments: [ConsentWords.app, ConsentWords.argument("what to forget (default: all services)")],
    options: GivenDecision.options,
    details: [ConsentWords.list],
    examples: ["insula consent reset com.example.editor"])

  private let given: GivenDecision

  init(_ arguments: ParsedArguments) throws(UsageError) {
    given = try GivenDecision(arguments, for: Self.description)
  }

  func run(in context: Context) throws -> ExitCode { try given.decide(nil, context) }
}
