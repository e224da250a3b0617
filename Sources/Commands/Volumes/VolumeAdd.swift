// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// `insula volume add`.
struct VolumeAddCommand: Command {
  static let description = CommandDescription(
    name: "volume add",
    summary: "Makes a directory, a disk or a server a volume of the tree, below /Volumes.",
    arguments: [
      .init(
        name: "SOURCE", help: "a directory, a disk or an image of one, UUID=..., or a URL", isRequired: true,
        kind: .file)
    ],
    options: [
      .init(name: "at", value: "NAME", help: "its name in /Volumes (default: its own)"),
      .init(name: "read-only", help: "let nobody change it through the tree"),
      .init(name: "ignore-owners", help: "let whoever comes count as the owner of all"),
      .init(name: "encrypted", help: "decrypt what gocryptfs has encrypted in the directory"),
      .init(name: "auto", help: "mount it when somebody first looks for it"),
      .init(
        name: "engine", value: "ENGINE", help: "who serves a disk: kernel (root's default) or program",
        kind: .word(["kernel", "program"])),
      AppsAccess.storeOption, CommandDescription.json,
    ],
    details: [
      """
      It is there at each mount until 'insula volume eject'; grants, ACLs and flags hold there. Yours exists
      for you and root alone; one that root adds in a machine's store is for all, as its modes say.
      """,
      "URLs: sftp://USER@HOST/PATH, dav://, davs://, rclone:REMOTE:PATH, gluster://; by root nfs://, smb://.",
    ],
    examples: ["insula volume add ~/projects", "insula volume add sftp://me@nas/music --at Music"])

  private let source: String
  private let name: String?
  private let options: ParsedArguments
  private let engine: String?
  private let store: String?
  private let json: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    source = arguments.argument(0) ?? ""
    name = arguments.value("at")
    options = arguments
    engine = arguments.value("engine")
    store = arguments.value("store")
    json = arguments.has("json")
    if let name { try Self.description.checkVolume(name: name) }
    if let engine, VolumeWish.Engine(rawValue: engine) == nil {
      throw Self.description.error("'\(engine.sanitized)' is no engine; choose kernel or program")
    }
    if options.has("encrypted"), ServerAddress.looksLikeOne(source) || source.hasPrefix("UUID=") {
      throw Self.description.error(
        "'--encrypted' is for a directory of this machine, as gocryptfs has made it")
    }
    if ServerAddress.looksLikeOne(source), ServerAddress(source) == nil {
      throw Self.description.error(
        "'\(source.sanitized)' is no address of a server; write one as sftp://USER@HOST/PATH")
    }
  }

  func run(in context: Context) throws -> ExitCode {
    var daemon = try RunningDaemon(store, context)
    let (wanted, opened) = try wish(daemon, context)
    let added = try daemon.volumes(.add(wanted), on: opened)
    if options.has("encrypted") {
      for volume in added {
        context.console.inform("it is locked; 'insula volume unlock \(volume.name.sanitized)' unlocks it")
      }
    }
    if json { context.console.print(json: added) }
    for volume in added where !json {
      context.console.print(path: "\(daemon.mountPoint)/\(volume.treePath)")
      if volume.keepsAttributes == false {
        context.console.note(
          "\(volume.name.sanitized) keeps neither ACLs nor flags; what is moved there loses them")
      }
    }
    return .ok
  }

  private func wish(_ daemon: RunningDaemon, _ context: Context) throws -> (VolumeWish, SharedFD?) {
    let (found, opened) = try daemon.source(named: source, context)
    guard let opened else {
      guard !options.has("encrypted") else {
        throw CommandFailure(.ENOTDIR, "can't open \(source.sanitized): \(Errno.ENOTDIR.messageAboutPath)")
      }
      return (wish(found), nil)
    }
    if options.has("encrypted") { return (wish(.encrypted(waits: false)), opened) }
    let isEncrypted = try? opened.use { (fd) throws(Errno) in try fd.status(of: EncryptedFiles.configuration)
    }
    if isEncrypted != nil {
      context.console.note(
        "\(source.sanitized) has files that gocryptfs has encrypted, and so they will look; "
          + "'--encrypted' adds it with what they contain")
    }
    return (wish(found), opened)
  }

  private func wish(_ source: VolumeWish.Source) -> VolumeWish {
    VolumeWish(
      source, name: name, isReadOnly: options.has("read-only"), ignoresOwners: options.has("ignore-owners"),
      isOnDemand: options.has("auto"), engine: engine.flatMap { VolumeWish.Engine(rawValue: $0) })
  }
}

extension RunningDaemon {
  /// What somebody calls a directory, a disk or a server; a directory is opened.
  ///
  /// Who serves an image of a disk would have it open, and so use the tree for as long as it serves it.
  func source(named name: String, _ context: Context) throws -> (VolumeWish.Source, SharedFD?) {
    let (found, opened) = try VolumeWish.Source.named(name, context)
    if case .disk(let path) = found, let file = try? FD.cwd.status(of: path),
      let tree = try? FD.cwd.openFollowing(mountPoint, pathOnly),
      file.st_dev == (try? tree.fd.status())?.st_dev
    {
      throw CommandFailure(
        .EINVAL,
        "\(name.sanitized) lies in the tree that it would be a volume of; move it out of \(mountPoint)")
    }
    return (found, opened)
  }
}

extension VolumeWish.Source {
  /// What somebody calls a directory, a disk or a server; a directory is opened.
  static func named(_ source: String, _ context: Context) throws -> (VolumeWish.Source, SharedFD?) {
    if ServerAddress.looksLikeOne(source) { return (.server(source), nil) }
    if source.hasPrefix("UUID=") || source.hasPrefix("LABEL=") { return (.disk(source), nil) }
    let path: String
    do throws(Errno) {
      let opened = SharedFD(try context.openWithoutOthersLinks(source))
      if try opened.use({ (fd) throws(Errno) in try fd.status().isDirectory }) { return (.directory, opened) }
      let own = try opened.use { (fd) throws(Errno) in try fd.ownPath() }
      path = String(decoding: own, as: UTF8.self)
    } catch {
      throw CommandFailure(error, "can't open \(source.sanitized): \(Context.words(ofMaking: error))")
    }
    // It is opened again by its path, now and at each mount: nobody else may put something else there.
    if let finding = Store.wayFindings(to: path).first {
      throw CommandFailure(
        .notPermitted,
        "\(source.sanitized) can't be a disk here: \(finding.path.sanitized) \(words(for: finding)); "
          + "move it to a directory of your own or of root's")
    }
    return (.disk(path), nil)
  }

  private static func words(for finding: StoreDoorFinding) -> String {
    if case .foreign(let user) = finding.problem {
      let name = Account.numbered(user)?.name.sanitized ?? "uid \(user)"
      return "belongs to \(name), who can put another one there"
    }
    return "lets others put another one there"
  }
}

extension CommandDescription {
  /// Throws for what can't be the name of a volume.
  func checkVolume(name: String) throws(UsageError) {
    guard name.isEmpty || name.utf8.count > 255 || name.hasPrefix(".") || name.includes("/") else { return }
    throw error(
      "'\(name.sanitized)' can't be the name of a volume; give a name without a slash, and no dot first")
  }
}
