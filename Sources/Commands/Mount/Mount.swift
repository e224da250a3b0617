// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
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
      .init(
        name: "o", short: "o", value: "OPTIONS", help: "mount options, separated by commas (see below)",
        mayRepeat: true, mayBeEmpty: true, kind: .list(MountOptions.completions)),
      .init(
        name: "files",
        help: "mount a view of your documents instead, of a store that is mounted (default: at ~/Files)"),
      .init(name: "foreground", short: "f", help: "stay in the foreground until unmounted"),
      .init(name: "sloppy", short: "s", help: "ignore unknown mount options"),
      .init(name: "background-child", help: "start the daemon itself", isHidden: true),
      .init(
        name: "can-take-over", value: "LAYOUT", help: "say whether a mount of that layout could be resumed",
        isHidden: true),
      .init(
        name: "resume", value: "NUMBER", help: "go on with what this process has served", isHidden: true,
        mayRepeat: true),
      .init(
        name: "program", value: "PATH", help: "where the installed program lies", isHidden: true,
        mayRepeat: true),
    ],
    details: [
      MountOptionHelp.general,
      "Mount options of insula:\n" + HelpText.table(MountOptionHelp.all.map { ($0.spelling, $0.help) }),
      """
      The files view has your own folders, iCloud Drive, and under each app's name the Documents of apps that
      share theirs (UIFileSharingEnabled). It goes with the store's mount, or by 'insula unmount'.
      """,
      "If a daemon was killed and its mount is still on the mount point, the mount is removed first.",
    ],
    examples: [
      "sudo insula mount", "insula mount ~/my-store ~/Insula -o ro", "insula mount -o remount,rw",
      "insula mount --files ~/Files",
      "mount -t fuse.insula /var/lib/insula /insula -o noatime",
      "/etc/fstab:  /var/lib/insula  /insula  fuse.insula  defaults,nofail  0  0",
    ],
    storeUse: .judgesItself)

  private let store: String?
  private let mountPoint: String?
  private var options: MountOptions
  private var optionWords: [String]
  private let isSloppy: Bool
  private let files: FilesMount?
  private let stays: Bool
  private let isBackgroundChild: Bool
  /// What a program of another version, maybe, has left in this process: see `NextProgram`.
  private let resumed: Int32?
  private let program: String?
  private let layout: String?

  init(_ arguments: ParsedArguments) throws(UsageError) {
    optionWords = arguments.allValues("o")
    isSloppy = arguments.has("sloppy")
    options = try MountOptions(optionWords, sloppy: isSloppy)
    files = arguments.has("files") ? try FilesMount(arguments) : nil
    stays = arguments.has("foreground")
    isBackgroundChild = arguments.has("background-child")
    resumed = arguments.value("resume").flatMap { Int32($0) }
    program = arguments.value("program")
    layout = arguments.value("can-take-over")
    // A mount is known by its place, so that alone is enough to change one.
    if options.isRemount, arguments.positional.count == 1 {
      store = nil
      mountPoint = arguments.argument(0)
    } else {
      store = arguments.argument(0)
      mountPoint = arguments.argument(1)
    }
  }

  /// What goes on with what this process has served was told everything when that began.
  var goesByConfiguration: Bool { layout == nil && resumed == nil && files == nil }

  func run(in context: Context) throws -> ExitCode {
    if let layout { return try rehearse(layout) }
    if let resumed { return try resume(resumed, context) }
    if let files { return try files.mount(context) }
    return try withConfiguredOptions(context).mount(context)
  }

  /// The same, with the mount options of the configuration files before those of the command line.
  private func withConfiguredOptions(_ context: Context) throws(UsageError) -> MountCommand {
    // A change of a mount leaves what is not named, and a child has been told by its parent.
    guard !options.isRemount, !isBackgroundChild, let configured = context.value(.mountOptions) else {
      return self
    }
    var command = self
    command.optionWords.insert(configured, at: 0)
    command.options = try MountOptions(command.optionWords, sloppy: isSloppy)
    return command
  }

  private func mount(_ context: Context) throws -> ExitCode {
    // Who serves it judges the way that was named, with its links.
    let named = context.unresolved(store ?? context.defaultStore)
    let storePath = context.absolute(named)
    let left = LeftService.stored(context.environment)
    // Nobody serves what is at the mount point, so no link on the way there may be looked for now.
    let mountPath = mountPoint ?? context.defaultMountPoint
    if let left { return try serve(storePath, named, mountPath, left, context) }
    if options.isRemount { return try remount(context.absolute(mountPath), context) }
    let place = try MountPoint.place(of: mountPath, context)
    if stays || isBackgroundChild { return try serve(storePath, named, place, nil, context) }
    context.console.detail(
      "mounting \(storePath) at \(place) with '-o \(optionWords.joined(separator: ","))'")
    var words = context.console.manner.words + ["mount", "--background-child", "--sloppy", named]
    // The default mount point is made if it is missing, so the child must know that it is the default.
    if mountPoint != nil { words.append(place) }
    let daemon = try BackgroundDaemon.start(words + optionWords.flatMap { ["-o", $0] }, context)
    return try daemon.waitUntilReady(context)
  }

  /// Says whether what a running program keeps could be taken over.
  private func rehearse(_ layout: String) throws -> ExitCode {
    guard layout == LeftService.layout else {
      throw CommandFailure(
        .failed,
        "insula \(Insula.version) keeps other things of a mount than the running program "
          + "(\(LeftService.layout), not \(layout))")
    }
    try CryptoLibrary.load()
    try SQLiteLibrary.load()
    // It is opened by its path once more, and may have been moved or changed.
    if let path = store {
      let store = try Store(opening: path, .inspect)
      guard store.isInUse else {
        throw CommandFailure(.failed, "the store at \(path) is not the one that is mounted")
      }
      try requireKnownApps(of: store)
    }
    return .ok
  }

  /// A program that does not know the registry's version would serve files without apps.
  ///
  /// Whatever else keeps it from being read may be over when it is needed.
  private func requireKnownApps(of store: Store) throws {
    do throws(StoreError) {
      _ = try Registry.existing(state: store.state, path: store.path + "/state", patience: 2000)
    } catch .registryNewer(let path, let found, let known) {
      throw StoreError.registryNewer(path: path, found: found, known: known)
    } catch {}
  }

  /// Goes on as the keeper that this process was before it became this program.
  private func resume(_ table: Int32, _ context: Context) throws -> ExitCode {
    // The paths are those that it was started with, from the root: to look at the mount point is to wait.
    let (storePath, mountPath) = (store ?? context.defaultStore, mountPoint ?? context.defaultMountPoint)
    do {
      return try serve(
        storePath, storePath, mountPath, try LeftService(table: table, environment: context.environment),
        context)
    } catch {
      // Who waits for the mount would wait for ever.
      context.console.note("mount: can't serve \(mountPath) any more, so it is removed")
      if let mount = DaemonSearch.mount(at: mountPath) {
        try? Unmounting.unmount(mount, lazily: true, context)
      }
      throw error
    }
  }

  /// Mounts, or goes on with what is `left`, and stays until the mount is gone.
  private func serve(
    _ storePath: String, _ named: String, _ mountPath: String, _ left: LeftService?, _ context: Context
  ) throws -> ExitCode {
    if isBackgroundChild, left == nil { try BackgroundDaemon.prepareChild() }
    let store = try open(storePath, named, left)
    let directory = try left == nil ? prepare(store, mountPath, context) : nil
    DaemonProcess.prepare()
    var serve = options.serve
    serve.source = options.source ?? storePath
    if left == nil { serve.files = try FilesMount.place(options.files, beside: store, context) }
    serve.allowOther = store.description.mode == .system
    serve.languages = Languages(environment: context.environment)
    serve.serversFile = serve.serversFile ?? context.serversFile
    var settings = Service.Settings(
      mountPoint: mountPath, options: serve, place: context.controlPlace, inBackground: isBackgroundChild,
      version: Insula.version)
    settings.words =
      [isBackgroundChild ? "--background-child" : "--foreground", "--sloppy", storePath, mountPath]
      + optionWords.flatMap { ["-o", $0] }
    settings.program = program
    settings.directory = directory
    settings.environment = context.environment
    if isBackgroundChild, left == nil { settings.untilReady = FD(BackgroundDaemon.readyDescriptor) }
    try Service.run(store: store, settings, left: left) { isFirst in
      if let socket = context.environment["NOTIFY_SOCKET"] {
        let place = "\(storePath) at \(mountPath)".sanitized
        do throws(Errno) {
          try notifyServiceManager("READY=1\nSTATUS=\(place)", at: socket)
        } catch {
          // Who waited for the first worker may be gone by now: a session that has ended, say.
          guard !isFirst else { throw error }
        }
      }
      // Last: whoever waits for this may end the service manager next.
      if isBackgroundChild, isFirst { try BackgroundDaemon.reportReady() }
    }
    return .ok
  }

  /// What a mount needs that is not there yet.
  ///
  /// Gives the directory to mount on; where fusermount3 does that, which opens it itself, there is none.
  private func prepare(_ store: Store, _ mountPath: String, _ context: Context) throws -> FD? {
    try Requirements.check(context)
    let directory = try MountPoint(mountPath, isDefault: mountPoint == nil)
      .prepare(allowingNonEmpty: options.allowsNonEmpty, store: store.path, context)
    for finding in Store.wayFindings(to: mountPath) {
      context.console.note(
        "mount: don't name the store by its mount point: \(finding.path) \(finding.words)")
    }
    noteWhatNeedsRoot(store, context)
    if let twin = DaemonSearch(context).twin(of: store) {
      context.console.note(
        "mount: \(store.path) has the same UUID as \(twin.store), which is mounted, so one is a copy of the "
          + "other; when this one is not mounted, 'insula check --repair \(store.path)' gives it a new UUID")
    }
    guard store.description.mode == .system else { return nil }
    return directory.release()
  }

  /// Nothing is turned off in silence.
  private func noteWhatNeedsRoot(_ store: Store, _ context: Context) {
    for finding in store.doorFindings {
      context.console.note("mount: \(finding.path) \(finding.words); \(finding.advice)")
    }
    guard store.description.mode == .rootless else { return }
    for flag in [MountFlag.relatime, .strictatime] where options.serve.mountFlags.contains(flag) {
      context.console.note(
        "mount: \(flag.rawValue) requires root; the backing filesystem determines access times")
    }
  }

  private func open(_ path: String, _ named: String, _ left: LeftService?) throws -> Store {
    if let left {
      guard let lock = left.storeLock else {
        throw CommandFailure(.failed, "the lock of \(path) was lost; mount the store again")
      }
      return try Store(opening: path, .resumed(lock: lock))
    }
    do throws(StoreError) {
      return try Store(opening: path, named: named, .serving)
    } catch {
      // A read-only mount needs no more than a read-only filesystem below.
      guard case .readOnly = error, options.serve.readOnly else { throw error }
      return try Store(opening: path, named: named, .exclusiveReadOnly)
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
      try mount.remount(flags: wanted.serve.mountBits)
    } catch {
      let why =
        switch error {
        case .EBUSY: "files are open for writing; close them first"
        case .EINVAL, .ELOOP, .ENOTDIR: "something else is at that path by now; see 'insula status'"
        default: error.message
        }
      throw CommandFailure(CommandFailure(error).code, "can't change the mount \(path): \(why)")
    }
    return .ok
  }
}
