// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// `insula mount`.
struct MountCommand: Command {
  static let description = CommandDescription(
    name: "mount", summary: "Mounts a store, and returns when the mount is ready.",
    arguments: [
      .init(
        name: "STORE",
        help: "a store that 'insula init' created (root: /var/lib/insula, a user: ~/.local/share/insula)",
        kind: .directory),
      .init(
        name: "MOUNTPOINT", help: "an empty directory (root: /insula, a user: ~/Insula)", kind: .directory),
    ],
    options: [
      .init(name: "o", short: "o", value: "OPTIONS", help: "mount options, separated by commas (see below)"),
      .init(name: "foreground", short: "f", help: "stay in the foreground until unmounted"),
      .init(name: "sloppy", short: "s", help: "ignore unknown mount options"),
      .init(name: "background-child", help: "start the daemon itself", isHidden: true),
    ],
    details: [
      """
      Mount options of mount(8): ro rw remount nosuid noexec nodev noatime nodiratime relatime strictatime
      sync dirsync and their opposites, and fsname=NAME. Options for fstab (auto, user, nofail, x-...) are
      ignored.
      """,
      """
      Mount options of insula:
        nonempty        mount even if the directory is not empty
        nogrpid         give new files the group of their creator, as usual on Linux, not of their directory
        nopassthrough   let all data go through the daemon
        nohandles       don't use file handles; keep some descriptors open instead
        local_locks     let POSIX locks apply within this mount only
        cache=SECONDS   how long the kernel may use cached names and attributes
        restarts=N      how often the process that serves may die within ten seconds and
                        be replaced (default: 4); then the mount is removed
        threads=N       number of threads that process requests (1 to 256)
        poll=USEC       how long a thread polls for the next request before it sleeps (0 to 10000)
      """,
      "If a daemon was killed and its mount is still on the mount point, the mount is removed first.",
    ],
    examples: [
      "sudo insula mount", "insula mount ~/my-store ~/Insula -o ro", "insula mount -o remount,rw",
      "mount -t fuse.insula /var/lib/insula /insula -o noatime",
      "/etc/fstab:  /var/lib/insula  /insula  fuse.insula  defaults,nofail  0  0",
    ])

  private let store: String?
  private let mountPoint: String?
  private let options: MountOptions
  private let optionWords: [String]
  private let stays: Bool
  private let isBackgroundChild: Bool

  init(_ arguments: ParsedArguments) throws(UsageError) {
    optionWords = arguments.allValues("o")
    options = try MountOptions(optionWords, sloppy: arguments.has("sloppy"))
    stays = arguments.has("foreground")
    isBackgroundChild = arguments.has("background-child")
    // A mount is known by its place, so that alone is enough to change one.
    if options.isRemount, arguments.positional.count == 1 {
      store = nil
      mountPoint = arguments.argument(0)
    } else {
      store = arguments.argument(0)
      mountPoint = arguments.argument(1)
    }
  }

  func run(in context: Context) throws -> ExitCode {
    let storePath = context.absolute(store ?? context.defaultStore)
    let mountPath = context.absolute(mountPoint ?? context.defaultMountPoint)
    if options.isRemount { return try remount(mountPath, context) }
    if stays || isBackgroundChild { return try serve(storePath, mountPath, context) }
    var words = ["mount", "--background-child", "--sloppy", storePath]
    // The default mount point is made if it is missing, so the child must know that it is the default.
    if mountPoint != nil { words.append(mountPath) }
    let daemon = try BackgroundDaemon.start(words + optionWords.flatMap { ["-o", $0] }, context)
    return try daemon.waitUntilReady(context)
  }

  /// Mounts, and stays until the mount is gone.
  private func serve(_ storePath: String, _ mountPath: String, _ context: Context) throws -> ExitCode {
    if isBackgroundChild { try BackgroundDaemon.prepareChild() }
    let store = try open(storePath)
    try Requirements.check(context)
    try MountPoint(mountPath, isDefault: mountPoint == nil)
      .prepare(allowingNonEmpty: options.allowsNonEmpty, store: storePath, context)
    noteWhatNeedsRoot(store, context)
    if let twin = DaemonSearch(context).twin(of: store) {
      context.console.note(
        "mount: \(storePath) has the same UUID as \(twin.store), which is mounted, so one is a copy of the "
          + "other; when this one is not mounted, 'insula check --repair \(storePath)' gives it a new UUID")
    }
    DaemonProcess.prepare()
    var serve = options.serve
    serve.source = options.source ?? storePath
    serve.allowOther = store.description.mode == .system
    let settings = Service.Settings(
      mountPoint: mountPath, options: serve, place: context.controlPlace, inBackground: isBackgroundChild)
    try Service.run(store: store, settings) {
      if isBackgroundChild { try BackgroundDaemon.reportReady() }
      if let socket = context.environment["NOTIFY_SOCKET"] {
        let place = "\(storePath) at \(mountPath)".sanitized
        try notifyServiceManager("READY=1\nSTATUS=\(place)", at: socket)
      }
    }
    return .ok
  }

  /// Nothing is turned off in silence.
  private func noteWhatNeedsRoot(_ store: Store, _ context: Context) {
    guard store.description.mode == .rootless else { return }
    for flag in [MountFlag.relatime, .strictatime] where options.serve.mountFlags.contains(flag) {
      context.console.note(
        "mount: \(flag.rawValue) requires root; the backing filesystem determines access times")
    }
  }

  private func open(_ path: String) throws -> Store {
    do throws(StoreError) {
      return try Store(opening: path, .exclusive)
    } catch {
      // A read-only mount needs no more than a read-only filesystem below.
      guard case .readOnly = error, options.serve.readOnly else { throw error }
      return try Store(opening: path, .exclusiveReadOnly)
    }
  }

  /// Changes the flags of a mount that is there: what is not named stays as it is.
  private func remount(_ path: String, _ context: Context) throws -> ExitCode {
    guard let mount = DaemonSearch.mount(at: path) else {
      throw CommandFailure(.notMounted, "no insula store is mounted at \(path); see 'insula status'")
    }
    guard context.isRoot else {
      throw CommandFailure(
        .notPermitted,
        "only root can change a mount; unmount \(path) and mount it again with other options")
    }
    let before = [mount.options, mount.superOptions]
    let wanted = try MountOptions(before + optionWords, sloppy: true)
    do throws(Errno) {
      try LinuxIO.remount(path, flags: wanted.serve.mountBits)
    } catch {
      let why = error == .EBUSY ? "files are open for writing; close them first" : error.message
      throw CommandFailure(CommandFailure(error).code, "can't change the mount \(path): \(why)")
    }
    return .ok
  }
}
