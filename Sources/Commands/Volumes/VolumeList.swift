// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import LinuxIO
internal import Policy

/// `insula volume list`.
struct VolumeListCommand: Command {
  static let description = CommandDescription(
    name: "volume list", summary: "Lists the volumes of the tree.",
    options: [AppsAccess.storeOption, CommandDescription.json],
    details: [
      """
      A directory that could not be opened is tried once more; a disk or server is, when somebody looks into
      it. For root, this lists those of all users; in the tree they are there for these alone.
      """
    ],
    storeUse: .looks)

  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    var daemon = try RunningDaemon(store, context)
    let volumes = try daemon.volumes(.list)
    context.console.print(
      list: volumes, json: json, none: "There are no volumes.",
      columns: ["NAME", "FOR", "STATE", "SOURCE"]
    ) { [$0.name, $0.audience, $0.state, $0.path] }
    return .ok
  }
}

extension VolumeDescription {
  /// The name for people, and whose it is if it is another user's.
  func words(for user: UInt32) -> String {
    owner == nil || owner == user ? name.sanitized : "\(name.sanitized) of \(audience.sanitized)"
  }

  /// For whom it is there.
  var audience: String {
    guard let owner else { return "everyone" }
    return Account.numbered(owner)?.name ?? "uid \(owner)"
  }

  var state: String {
    if isConfirmed == false { return "unconfirmed" }
    if missing != nil { return "missing" }
    if isWaiting, kind == "encrypted" { return "locked" }
    return isWaiting ? "waiting" : isReadOnly ? "read-only" : "read-write"
  }
}
