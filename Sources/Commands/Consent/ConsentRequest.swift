// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula consent request`.
struct ConsentRequestCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "consent request", summary: "Asks an app's user for consent; for use inside an app.",
    arguments: [ConsentWords.argument("what the app wants to use", isRequired: true)],
    options: [CommandDescription.json],
    details: [
      """
      If the user has not decided yet, they are asked, and this waits for the answer. The exit status is 0 if
      the app may use it, \(ExitCode.notPermitted.rawValue) if the user or an administrator does not allow \
      it, and \(ExitCode.undecided.rawValue) if nobody has
      decided: no person could be asked, or they closed the question.
      """,
      ConsentWords.states, ConsentWords.list,
    ])

  private let service: PrivacyService
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    guard let named = try Self.description.service(arguments.argument(0)) else {
      throw Self.description.error("SERVICE is missing")
    }
    service = named
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let own = try AppAccess.require(
      Self.description, context, instead: "'insula consent allow ID SERVICE' decides about an app")
    return try own.tell(own.requestConsent(service), json: json)
  }
}
