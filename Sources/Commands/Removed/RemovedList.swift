// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// `insula removed list`.
struct RemovedListCommand: Command {
  static let description = CommandDescription(
    name: "removed list", summary: "Lists removed containers that can be restored.",
    options: [AppsAccess.userOption, AppsAccess.storeOption, CommandDescription.json],
    details: [
      """
      When an app is uninstalled without --keep-data, its containers are removed and can be restored for 30
      days; the mount option removed=DAYS sets a shorter time. They count as purgeable: when the disk is
      nearly full, or 'insula purge --to' needs their room, they are deleted earlier. Of each user's removed
      containers, the latest 100 are kept.
      """,
      "For root, it lists those of all users, or with --user those of one user.",
    ],
    examples: ["insula removed list"])

  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) {
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let uid = try AppsAccess.user(user, context)
    let access = try AppsAccess.find(store, writing: true, context)
    let removed = try access.removed(of: uid).containers.map { RemovedDescription($0, in: access.root) }
    let showsUsers = context.isRoot && uid == nil
    context.console.print(
      list: removed, json: json, none: "There are no removed containers.",
      columns: ["NUMBER"] + (showsUsers ? ["USER"] : []) + ["REMOVED", "PATH"]
    ) { container in
      let user = showsUsers ? [Account.numbered(container.user)?.name ?? "uid \(container.user)"] : []
      return ["\(container.number)"] + user + [utcText(container.removed), container.path]
    }
    return .ok
  }
}

/// A removed container, as people and scripts see it.
struct RemovedDescription: Encodable {
  let number: Int64
  /// An app's, a group's, or one in iCloud.
  let kind: String
  let identifier: String
  let user: UInt32
  let team: String?
  /// Where it was.
  let path: String
  /// In seconds since 1970.
  let removed: Int64

  init(_ removed: RemovedContainer, in root: String) {
    number = removed.number
    kind = removed.container.kind.rawValue
    identifier = removed.container.identifier.text
    user = removed.container.user
    team = removed.container.team?.text
    path = "\(root)/\(removed.container.path)"
    self.removed = removed.removed
  }
}

extension CommandDescription {
  /// The number of a removed container.
  func number(_ text: String) throws(UsageError) -> Int64 {
    guard let number = Int64(text), number > 0 else {
      throw error("'\(text)' is not a number of 'insula removed list'")
    }
    return number
  }
}
