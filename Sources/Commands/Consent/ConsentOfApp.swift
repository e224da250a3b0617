// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

extension AppAccess {
  /// The app in whose view this runs, for a command that is for nobody else.
  static func require(
    _ description: CommandDescription, _ context: Context, instead: String
  ) throws -> AppAccess {
    guard let socket = context.appSocket else {
      throw CommandFailure(.usage, "\(description.name): this is for use inside an app; \(instead)")
    }
    return try AppAccess(socket, nil, context)
  }

  /// What was decided about the app and a service; a daemon need not tell what nobody has decided.
  func status(of service: PrivacyService, among all: [ConsentStatus]) -> ConsentStatus {
    all.first { $0.service == service }
      ?? ConsentStatus(
        identifier: own.identifier, user: own.user, service: service, state: .notDetermined)
  }

  /// Prints the state, and gives the exit status that stands for it.
  func tell(_ status: ConsentStatus, json: Bool) -> ExitCode {
    if json {
      context.console.print(json: status)
    } else {
      context.console.print(status.state.rawValue)
      if let reason = status.reason { context.console.inform("\(status.service.rawValue): \(reason)") }
    }
    return status.state.exitCode
  }
}
