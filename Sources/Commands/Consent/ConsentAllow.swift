// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon

/// `insula consent allow`.
struct ConsentAllowCommand: Command {
  static let description = CommandDescription(
    name: "consent allow", summary: "Lets an app use what is private, as if you had been asked.",
    arguments: [ConsentWords.app, ConsentWords.argument("what it may use", isRequired: true)],
    options: GivenDecision.options,
    details: [
      """
      A running app can use it at once. It holds until you change it, over updates of the app. If an
      administrator does not allow it, the exit status is \(ExitCode.notPermitted.rawValue).
      """,
      ConsentWords.list,
    ],
    examples: ["insula consent allow com.example.editor photos", "insula consent allow Editor contacts"])

  private let given: GivenDecision

  init(_ arguments: ParsedArguments) throws(UsageError) {
    given = try GivenDecision(arguments, for: Self.description)
  }

  func run(in context: Context) throws -> ExitCode { try given.decide(.allow, context) }
}
