// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula consent status`.
struct ConsentStatusCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "consent status",
    summary: "Tells an app what of its user's data it may use; for use inside an app.",
    arguments: [ConsentWords.argument("only this service")],
    options: [CommandDescription.json],
    details: [
      """
      Nobody is asked. With a SERVICE, the exit status is 0 if the app may use it,
      \(ExitCode.notPermitted.rawValue) if the user or an administrator does not allow it, and \
      \(ExitCode.undecided.rawValue) if nobody
      has decided yet.
      """,
      ConsentWords.states, ConsentWords.list,
    ])

  private let service: PrivacyService?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    service = try Self.description.service(arguments.argument(0))
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let own = try AppAccess.require(
      Self.description, context, instead: "'insula consent list ID' tells what was decided about an app")
    let all = try own.consents(.list(app: nil, user: nil))
    guard let service else {
      context.console.print(
        list: all, json: json, none: "There is nothing that this app could ask for.",
        columns: ["SERVICE", "STATE"]
      ) { [$0.service.rawValue, $0.stateWords] }
      return .ok
    }
    return own.tell(own.status(of: service, among: all), json: json)
  }
}
