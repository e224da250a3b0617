// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// `insula volume info`.
struct VolumeInfoCommand: Command {
  static let description = CommandDescription(
    name: "volume info", summary: "Shows what is known of a volume.",
    arguments: [.init(name: "NAME", help: "its name in /Volumes", isRequired: true)],
    options: [AppsAccess.storeOption, CommandDescription.json],
    storeUse: .looks)

  private let name: String
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    var daemon = try RunningDaemon(store, context)
    let volume = try daemon.volume(named: name, for: context.uid)
    if json {
      context.console.print(json: volume)
      return .ok
    }
    var rows = [
      ["name", volume.name], ["path", "\(daemon.mountPoint)/\(volume.treePath)"],
      [volume.kind, volume.path], ["for", volume.audience], ["state", volume.state],
    ]
    if volume.ignoresOwners { rows.append(["owners", "ignored"]) }
    if volume.keepsAttributes == false { rows.append(["ACLs and flags", "not kept"]) }
    if let filesystem = volume.filesystem { rows.append(["filesystem", filesystem]) }
    if let missing = volume.missing { rows.append(["missing", missing]) }
    context.console.print(table: rows)
    return .ok
  }
}
