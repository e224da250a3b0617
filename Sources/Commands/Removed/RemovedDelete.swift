// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy

/// `insula removed delete`.
struct RemovedDeleteCommand: Command {
  static let description = CommandDescription(
    name: "removed delete", summary: "Deletes removed containers for good.",
    arguments: [.init(name: "NUMBER", help: "the number of one, as in 'insula removed list'")],
    options: [
      .init(name: "all", help: "all of your removed containers; for root, those of all users"),
      AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      This can't be undone. Files that belong to another user or have a protective flag (uchg, schg, ...) are
      kept, in a directory beside the place of the container.
      """
    ],
    examples: ["insula removed delete 3", "insula removed delete --all"])

  private let number: Int64?
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    number = try arguments.argument(0).map { (text) throws(UsageError) in
      try Self.description.number(text)
    }
    guard (number == nil) == arguments.has("all") else {
      throw Self.description.error("it takes the NUMBER of a removed container, or '--all'")
    }
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, writing: true, context)
    let report = try access.deleteRemoved(number, of: uid)
    report.left.tell(in: access.root, context.console)
    let deleted = report.containers.map { RemovedDescription($0, in: access.root) }
    if json {
      context.console.print(json: deleted)
    } else if deleted.isEmpty {
      context.console.say("There are no removed containers.")
    } else {
      for container in deleted { context.console.say("Deleted what was \(container.path.sanitized).") }
      context.console.say("Freed \(Int(clamping: report.freed.bytes).asSize).")
    }
    return .ok
  }
}
