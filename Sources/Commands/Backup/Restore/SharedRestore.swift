// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store

/// Root's restore of what is in the tree and nobody's home.
///
/// A process of its own does it: whoever holds a file there holds up this one, and not the homes.
struct SharedRestore {
  let backup: RestoredBackup
  let access: any StoreAccess
  let bundles: String?
  let mountPoint: String

  private var context: Context { access.context }

  func run() throws -> ExitCode {
    do throws(Errno) { try ForeignACLs(removedFrom: backup.tree.fd).tell(context.console) } catch {
      throw CommandFailure(error, "can't look at what all users share: \(error.message)")
    }
    let missing = try AppRestore(backup: backup, access: access, bundles: bundles)
      .install(backup.manifest.apps, for: nil, home: nil)
    let root = try context.openDirectory(mountPoint)
    let (source, target) = (backup.tree.fd, root.fd)
    let done = CopyProgress.show("restoring what all users share", context.console) { note in
      let restorer = PlaceRestorer(.mount, keepingOwners: true, progress: note, step: Self.step)
      restorer.restore(source, to: target, isRehearsal: false)
      return restorer
    }
    for omission in done.omissions { context.console.note("\(omission.path): \(omission.reason)") }
    let failed =
      missing.map { "\($0.identifier.sanitized): \($0.reason)" }
      + done.failures.map { "\($0.path): \($0.reason)" }
    context.console.say(
      "Restored \(DataReport(count: done.count).words) that all users share.")
    if failed.isEmpty { return .ok }
    context.console.note("This was not restored:", failed.map { "  \($0)" })
    return .failed
  }

  /// Only what is nobody's home: in directories of the tree that are always there, and stay as they are.
  private static func step(_ names: [[UInt8]]) -> PlaceRestorer.Step {
    let path = names.map { String(decoding: $0, as: UTF8.self) }
    switch path.first {
    case "Users":
      if path.count == 1 { return .fill }
      guard path[1] == BackupSet.shared else { return .skip }
      return path.count == 2 ? .fill : .replace
    case "Library": return path.count <= 2 ? .fill : .replace
    default: return .skip
    }
  }
}
