// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

/// `insula volume add`.
struct VolumeAddCommand: Command {
  static let description = CommandDescription(
    name: "volume add", summary: "Makes a directory of this machine a volume of the tree, below /Volumes.",
    arguments: [
      .init(
        name: "DIRECTORY", help: "a directory on a disk of this machine", isRequired: true, kind: .directory)
    ],
    options: [
      .init(name: "at", value: "NAME", help: "its name in /Volumes (default: that of the directory)"),
      .init(name: "read-only", help: "let nobody change it through the tree"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      What is in the directory is then a part of the tree, with its ACLs and flags, and you can grant it to
      apps ('insula grant'). It stays where it is, and programs go on using it there. It is there at each
      mount, until 'insula volume eject' takes it away, which removes no file.
      """,
      """
      A volume that you add exists for you and for root alone. In a machine's store, one that root adds exists
      for everyone, and its modes say who may do what. Files with a POSIX ACL (setfacl) can be used by their
      owner alone through the tree, and what is mounted in the directory is not a part of the volume.
      """,
    ],
    examples: ["insula volume add ~/projects", "insula volume add /srv/music --at Music --read-only"])

  private let directory: String
  private let name: String?
  private let isReadOnly: Bool
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    directory = arguments.argument(0) ?? ""
    name = arguments.value("at")
    isReadOnly = arguments.has("read-only")
    store = arguments.value("store")
    json = arguments.has("json")
    if let name, name.isEmpty || name.utf8.count > 255 || name.hasPrefix(".") || name.includes("/") {
      throw Self.description.error(
        "'\(name.sanitized)' can't be the name of a volume; give a name without a slash, and no dot first")
    }
  }

  func run(in context: Context) throws -> ExitCode {
    var daemon = try RunningDaemon(store, context)
    let opened: SharedFD
    do throws(Errno) {
      opened = SharedFD(
        try context.reachable(directory).withName { (path) throws(Errno) in
          try FD.cwd.openFollowing(path, O_DIRECTORY | pathOnly)
        })
    } catch {
      throw CommandFailure(error, "can't open \(directory.sanitized): \(error.messageAboutPath)")
    }
    let added = try daemon.volumes(.add(name: name, isReadOnly: isReadOnly), on: opened)
    if json { context.console.print(json: added) }
    for volume in added where !json {
      context.console.print(path: "\(daemon.mountPoint)/Volumes/\(volume.name)")
    }
    return .ok
  }
}
