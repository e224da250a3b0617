// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Policy

/// `insula removed restore`.
struct RemovedRestoreCommand: Command {
  static let description = CommandDescription(
    name: "removed restore", summary: "Puts a removed container back to where it was.",
    arguments: [.init(name: "NUMBER", help: "its number, as in 'insula removed list'", isRequired: true)],
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: [
      """
      The container is kept for the next installation of an app of the same team, as if the app had been
      uninstalled with --keep-data. If there is a new container by now, nothing is changed: uninstall the app
      first, which removes that container.
      """
    ],
    examples: ["insula removed restore 3"])

  private let number: Int64
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    number = try Self.description.number(arguments.argument(0) ?? "")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let access = try AppsAccess.find(store, writing: true, context)
    let restored = try access.restoreRemoved(number).containers.map {
      RemovedDescription($0, in: access.root)
    }
    if json {
      context.console.print(json: restored)
    } else {
      for container in restored { context.console.say("Restored \(container.path.sanitized).") }
    }
    return .ok
  }
}
