// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// `insula volume eject`.
struct VolumeEjectCommand: Command {
  static let description = CommandDescription(
    name: "volume eject", summary: "Takes a volume out of the tree; its files stay where they are.",
    arguments: [.init(name: "NAME", help: "its name in /Volumes", isRequired: true)],
    options: [
      .init(name: "force", help: "also while it is used, or files are not uploaded; programs get EIO"),
      VolumeOwner.option, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      A volume that is in use is not ejected, and the message says by whom. What was granted on it is taken
      back. Of an encrypted one the encrypted files stay; 'insula volume add --encrypted' adds them again. A
      home on a volume is called Users/NAME; 'insula user add' with the same --home brings it back.
      """
    ])

  private let name: String
  private let force: Bool
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    force = arguments.has("force")
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let owner = try AppsAccess.user(user, context)
    var daemon = try RunningDaemon(store, context)
    let ejected = try daemon.volumes(.eject(name: name, user: owner, force: force))
    if json {
      context.console.print(json: ejected)
    } else {
      context.console.inform("ejected \(ejected.first?.words(for: context.uid) ?? name.sanitized)")
      if force, let left = ejected.first?.missing { context.console.note(left.sanitized) }
    }
    return .ok
  }
}
