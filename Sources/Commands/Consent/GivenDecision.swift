// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// What `insula consent allow`, `deny` and `reset` were given.
struct GivenDecision {
  let app: AppReference
  /// Nil for all.
  let service: PrivacyService?
  let user: String?
  let store: String?
  let json: Bool

  static let options = [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json]

  init(_ arguments: ParsedArguments, for description: CommandDescription) throws(UsageError) {
    app = try description.app(arguments.argument(0))
    service = try description.service(arguments.argument(1))
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  /// Has it decided, and says what holds now.
  func decide(_ decision: ConsentDecision?, _ context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, context)
    let identifier = try access.identifier(of: app, for: uid).text
    let now = try access.consents(.decide(app: identifier, service: service, as: decision, user: uid))
    if json {
      context.console.print(json: now)
    } else if now.isEmpty {
      context.console.say("Nothing was decided about \(identifier).")
    }
    for status in now where !json { context.console.say(status.sentence) }
    // An administrator's rule is stronger than what was just decided.
    return decision == .allow && now.contains { $0.state == .restricted } ? .notPermitted : .ok
  }
}
