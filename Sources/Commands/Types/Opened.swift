// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon

/// `insula opened`.
struct OpenedCommand: Command {
  static let worksInApps = true
  static let description = CommandDescription(
    name: "opened", summary: "Waits until an app's user opens files with the app; for use inside an app.",
    options: [CommandDescription.json],
    details: [
      """
      The absolute paths are printed, one to a line; none if the user has opened the app and no file. An app
      that calls this is told, and not started once more, when its user opens files with it ('insula open', a
      double-click). It should call this again within five seconds, or it is started once more after all.
      """,
      "The files that an app was started with are its arguments, and not printed here.",
    ],
    examples: ["while insula opened >>opened; do ...; done", "insula opened --json"])

  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let own = try AppAccess.require(
      Self.description, context, instead: "'insula open --with ID FILE' opens a file with an app")
    let paths = try own.awaitOpened()
    if json { context.console.print(json: paths) }
    for path in paths where !json { context.console.print(path: path) }
    return .ok
  }
}
