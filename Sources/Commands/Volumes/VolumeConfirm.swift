// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Policy

/// `insula volume confirm`.
struct VolumeConfirmCommand: Command {
  static let description = CommandDescription(
    name: "volume confirm", summary: "Lets a volume be in the tree that was not added on this machine.",
    arguments: [.init(name: "NAME", help: "as 'insula volume list' shows it", isRequired: true)],
    options: [
      .init(name: "yes", help: "don't ask"), AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      A store that was copied, restored, or comes from another machine says which directories, disks and
      servers are its volumes, and which homes lie elsewhere. They count only where they were added: anywhere
      else they are listed as unconfirmed, and nothing opens them. This shows what one would open, and for
      whom, and lets it be there when that is agreed to. Of the machine's store only root can do that.
      """
    ],
    examples: ["sudo insula volume confirm photos", "sudo insula volume confirm Users/anna"])

  private let name: String
  private let isAgreed: Bool
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    isAgreed = arguments.has("yes")
    store = arguments.value("store")
    json = arguments.has("json")
  }

  func run(in context: Context) throws -> ExitCode {
    var daemon = try RunningDaemon(store, context)
    let volume = try daemon.volume(named: name, for: context.uid)
    guard volume.isConfirmed == false else {
      throw CommandFailure(.failed, "\(name.sanitized) needs no confirmation; nothing was changed")
    }
    if !json { context.console.print(table: Self.rows(of: volume, daemon.mountPoint)) }
    if !isAgreed {
      guard context.hasTerminal else {
        throw CommandFailure(
          .failed, "nobody can be asked here, so nothing was changed; '--yes' lets it be there")
      }
      try context.requireAgreement("Let this be in the tree?")
    }
    let confirmed = try daemon.volumes(.confirm(name: name, seen: volume))
    if json {
      context.console.print(json: confirmed)
    } else {
      context.console.inform("confirmed \(name.sanitized)")
      if let missing = confirmed.first?.missing { context.console.note(missing.sanitized) }
    }
    return .ok
  }

  private static func rows(of volume: VolumeDescription, _ mountPoint: String) -> [[String]] {
    var rows = [
      ["path", "\(mountPoint)/\(volume.treePath)"], [volume.kind, volume.path], ["for", volume.audience],
      ["access", volume.isReadOnly ? "read-only" : "read-write"],
    ]
    if let isKernels = volume.isKernels {
      rows.append(["served by", isKernels ? "the kernel" : "a program"])
    }
    if volume.ignoresOwners { rows.append(["owners", "ignored"]) }
    return rows
  }
}
