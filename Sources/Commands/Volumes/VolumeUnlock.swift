// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// `insula volume unlock`.
struct VolumeUnlockCommand: Command {
  static let description = CommandDescription(
    name: "volume unlock", summary: "Unlocks an encrypted volume.",
    arguments: [.init(name: "NAME", help: "its name in /Volumes", isRequired: true)],
    options: [
      VolumePassword.option, VolumeOwner.option, AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The password is asked for, or read from a file or from input that is no terminal. gocryptfs gets it,
      which runs with the rights of the volume's user. It is unlocked until 'insula volume lock', or until the
      store is unmounted.
      """
    ])

  private let name: String
  private let passwordFile: String?
  private let user: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    passwordFile = arguments.value("password-file")
    user = arguments.value("user")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    let owner = try AppsAccess.user(user, context)
    var daemon = try RunningDaemon(store, context)
    let volume = try daemon.volume(named: name, of: owner, for: context.uid)
    guard owner != nil || volume.owner == nil || volume.owner == context.uid else {
      throw VolumeOwner.failure(volume)
    }
    guard volume.kind == "encrypted" else {
      throw CommandFailure(.failed, "\(name.sanitized) is not encrypted, so there is nothing to unlock")
    }
    if !volume.isWaiting, volume.missing == nil {
      context.console.inform("\(name.sanitized) is unlocked already")
      return .ok
    }
    let password = try VolumePassword(passwordFile, isNew: false, of: volume.words(for: context.uid), context)
    return try daemon.unlock(name, of: owner, with: password, json: json, context)
  }
}
