// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Fuse
internal import LinuxIO
internal import Policy

/// `insula volume create`.
struct VolumeCreateCommand: Command {
  static let description = CommandDescription(
    name: "volume create", summary: "Makes a volume of one's own whose files are encrypted.",
    arguments: [.init(name: "NAME", help: "its name in /Volumes", isRequired: true)],
    options: [
      .init(name: "encrypted", help: "encrypt its files, by gocryptfs (required)"),
      .init(name: "size", value: "SIZE", help: "reserve that much for it, as 10G, and let it have no more"),
      .init(
        name: "in", value: "DIRECTORY", help: "where the encrypted files lie (default: beside your store)",
        kind: .directory),
      VolumePassword.option, .init(name: "wait", help: "while it is locked, let programs wait for it"),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      The password is asked for twice, or read from a file or from input that is no terminal. Without it
      nobody can read the volume: there is no other way. It is there unlocked; 'insula volume lock' locks it.
      """,
      """
      The encrypted files are ordinary files, which any program can back up. Names and contents are hidden;
      sizes, times and the number of files are not.
      """,
      """
      With '--size' they are on a disk of their own, whose image ('gocryptfs.ext4') has that size from the
      start. The kernel mounts it, so only the machine's store has such volumes, and only root can write to
      the image. Its user can read and remove it; of copies, those are used that root has made
      ('cp -a --reflink=never').
      """,
    ],
    examples: [
      "insula volume create Private --encrypted", "insula volume create Photos --encrypted --size 10G",
    ])

  private let name: String
  private let directory: String?
  private let passwordFile: String?
  private let waits: Bool
  private let size: Int64?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = arguments.argument(0) ?? ""
    directory = arguments.value("in")
    passwordFile = arguments.value("password-file")
    waits = arguments.has("wait")
    store = arguments.value("store")
    json = arguments.has("json")
    try Self.description.checkVolume(name: name)
    guard arguments.has("encrypted") else {
      throw Self.description.error(
        "only volumes that are encrypted are made: give '--encrypted'; 'insula volume add' adds a directory")
    }
    size = try arguments.value("size").map { (text) throws(UsageError) in
      guard let size = SizeText.bytes(of: text) else {
        throw Self.description.error("'\(text.sanitized)' is no size; write one as 500M, 10G or 1T")
      }
      return size
    }
  }

  func run(in context: Context) throws -> ExitCode {
    var daemon = try RunningDaemon(store, context)
    let gocryptfs = try Gocryptfs(context)
    guard try !daemon.volumes(.list).contains(where: { $0.name == name }) else {
      throw CommandFailure(.EEXIST, "there is a volume \(name.sanitized) already; choose another name")
    }
    let place = try EncryptedPlace(
      context.unresolved(directory ?? context.defaultStore + "-volumes/" + name), context)
    let password: VolumePassword
    var isPrepared = false
    do {
      password = try VolumePassword(passwordFile, isNew: true, of: name, context)
      isPrepared = true
      try gocryptfs.prepare(place.directory, for: password)
      // The files will be elsewhere.
      if size != nil { try FD(place.directory.number).remove(EncryptedFiles.vector, directory: false) }
      _ = try daemon.volumes(
        .add(VolumeWish(.encrypted(waits: waits, size: size), name: name)), on: place.directory)
    } catch {
      place.remove(isPrepared: isPrepared)
      throw error
    }
    return try daemon.unlock(name, with: password, json: json, context)
  }
}

extension RunningDaemon {
  /// Has a volume unlocked, and shows it.
  mutating func unlock(
    _ name: String, of owner: UInt32? = nil, with password: VolumePassword, json: Bool, _ context: Context
  ) throws -> ExitCode {
    let unlocked = try volumes(.unlock(name: name, user: owner), on: try password.pipe())
    if json { context.console.print(json: unlocked) }
    for volume in unlocked where !json {
      context.console.print(path: "\(mountPoint)/Volumes/\(volume.name)")
    }
    return .ok
  }
}
