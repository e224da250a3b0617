// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon

/// `insula system rollback`.
struct SystemRollbackCommand: Command {
  static let description = CommandDescription(
    name: "system rollback", summary: "Returns to the system domain before the last update.",
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: [
      "A second rollback undoes the first."
    ])

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    let versions = try access.rollbackSystem()
    return SystemDescription.tell(versions, json, "again", context.console)
  }
}
