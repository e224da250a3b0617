// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
package import LinuxIO
internal import Policy
internal import Store
internal import Synchronization
internal import Volume

/// Why a store can't be served.
package enum ServeFailure: Error, CustomStringConvertible {
  case noDevice(Errno)
  case mount(mountPoint: String, Errno)
  case helper(mountPoint: String)
  case tree(path: String, Errno)
  case threads(Errno)
  case confinement(Errno)
  case noAnswer(mountPoint: String)
  case lost(mountPoint: String)

  package var description: String {
    switch self {
    case .noDevice(let error):
      "can't open /dev/fuse (\(error.message)): "
        + "load the module with 'modprobe fuse', or let this container use the device"
    case .mount(let mountPoint, let error):
      "can't mount at \(mountPoint): \(error.message)"
        + (error == .EPERM
          ? "; only root can mount this store; run without root to mount one of your own" : "")
    case .helper(let mountPoint):
      "fusermount3 could not mount at \(mountPoint) (see its message above); "
        + "it must be set-user-ID root (package fuse3), and the mount point must be yours"
    case .tree(let path, let error):
      "can't read the tree of the store \(path): \(error.message); run 'insula check \(path)'"
    case .threads(let error):
      "can't start threads: \(error.message); raise the limits on processes and memory"
    case .confinement(let error):
      "can't filter the daemon's system calls: \(error.message); the kernel must have seccomp filters"
    case .noAnswer(let mountPoint):
      "the kernel did not start to use the mount at \(mountPoint) in time; see the kernel log (dmesg)"
    case .lost(let mountPoint):
      "what another process has left of the mount at \(mountPoint) is damaged; "
        + "the mount is gone, 'insula mount' mounts the store again"
    }
  }
}

/// A mounted store.
package final class Server: Sendable {
  let store: Store
  let log: EventLog
  let mountPoint: String
  let options: ServeOptions
  let view: View
  let pool: WorkerPool
  private let usesHandles: Bool
  /// The store as it is served, where reading it follows other rules than the filesystem that it lies on.
  private let privateStore: PrivateMount?
  private let parts: ServedParts
  /// Through which what is sealed is read: that changes nothing in it, not even a time.
  private let noatimeTree: PrivateMount?
  let volume: Volume
  /// What users have granted their apps.
  let grants: GrantService
  /// What users have consented to, and whom they are asked by.
  let consents: ConsentService
  /// What lies elsewhere and is a part of the tree.
  let volumes: VolumeService
  /// On containers that other stores can reach.
  let leases: ContainerLeases
  private let shapes: AppShapes
  /// How much room apps take.
  let storage: StorageService
  /// The apps that run.
  package let views: RunningViews
  /// The backups that are being made.
  let backups = BackupRuns()
  /// The files views of users.
  let files = FilesViews()
  /// Through which these ask.
  let appSockets: AppSocketServer
  let appPlaces: AppSocketPlaces?
  let grantReadings = GrantReadings()
  let ended: Ended
  /// Who makes and takes away mounts where that is not ours to do.
  let helper: MountHelper
  /// What the next worker finds, and what another one has left; nil where there is no keeper.
  let kept: KeptState?
  private let left: LeftDescriptors?
  /// The process that has started this one.
  let keeper = getppid()
  let device = Mutex<DeviceNumber?>(nil)

  /// Rings once, when the connection has ended and nothing is in work.
  final class Ended: Sendable {
    let wakeup: Wakeup
    init() throws(Errno) { wakeup = try Wakeup() }
  }

  /// Mounts the store; returns when the kernel has begun to use it.
  static func start(
    store: Store, log: EventLog, registry: @escaping GrantService.RegistrySource, mountPoint: String,
    _ directory: FD?, options: ServeOptions, helper: MountHelper, kept: KeptState?, left: LeftDescriptors?
  ) throws -> Server {
    let server = try Server(store, log, registry, mountPoint, options, helper, kept, left)
    do {
      // What another worker has left is taken over when all views are known.
      if left == nil { try server.connect(over: directory) }
    } catch {
      try? server.unmount(lazily: true)
      server.pool.stop()
      throw error
    }
    return server
  }

  private init(
    _ store: Store, _ log: EventLog, _ registry: @escaping GrantService.RegistrySource,
    _ mountPoint: String, _ options: ServeOptions, _ helper: MountHelper, _ kept: KeptState?,
    _ left: LeftDescriptors?
  ) throws {
    (self.log, self.kept, self.left) = (log, kept, left)
    self.store = store
    self.helper = helper
    self.mountPoint = mountPoint
    self.options = options
    var settings = options.volumeSettings(for: store.description)
    settings.lockHolders = kept?.lockHolders
    do throws(Errno) {
      privateStore = try settings.isSystem ? Self.privateMount(of: store.directory, options) : nil
      parts = try Store.openParts(of: privateStore?.root ?? store.directory)
      var never = AccessTimeRule()
      never.files = .never
      noatimeTree = try settings.isSystem ? PrivateMount(of: store.tree, never) : nil
    } catch {
      throw ServeFailure.tree(path: store.path, error)
    }
    settings.fileHandles =
      options.fileHandles && settings.isSystem && Volume.canUseHandles(parts.tree.fd)
    settings.isRemote = (try? parts.tree.fd.filesystemKind().isRemote) ?? true
    if let seconds = options.cacheSeconds { settings.cacheSeconds = seconds }
    let descriptorLimit = DaemonProcess.descriptorLimit()
    settings.descriptors = min(max(descriptorLimit / 2 - 64, 64), 8192)
    usesHandles = settings.fileHandles
    // Names, what is kept for users, and a sixteenth for the daemon itself.
    let limits = Budget.Limits(descriptors: descriptorLimit - settings.descriptors - descriptorLimit / 16)
    let budget = Budget(limits, daemonUser: ProcessID.user) { DaemonLog.write($0) }
    var poolSettings = PoolSettings()
    if let threads = options.threads { poolSettings.threads = threads }
    if let poll = options.pollMicroseconds { poolSettings.pollNanoseconds = UInt64(poll) * 1000 }
    let types = KnownTypes(registry)
    volume = Volume(
      tree: parts.tree.fd, staging: parts.staging, noatimeTree: noatimeTree?.root, settings: settings,
      budget: budget, slow: SlowWork(servers: poolSettings.servers, budget: budget), kept: kept,
      refusals: log, types: { types.table(for: $0, in: $1) }
    ) { DaemonLog.write($0) }
    views = RunningViews(budget)
    // A kernel that looks at it already would not learn of them; the next mount makes them.
    if kept?.hasPredecessor != true, !options.readOnly { try? StoreLayout.addNewDirectories(to: store) }
    let shapes = AppShapes(store: store, volume: volume)
    self.shapes = shapes
    try Self.noteApps(of: store, registry, in: volume, shapes)
    let sockets: AppSocketServer
    do throws(Errno) { sockets = try AppSocketServer(budget: budget) } catch {
      throw ServeFailure.threads(error)
    }
    (appSockets, appPlaces) = (sockets, AppSocketPlaces(of: store, viewsGoOn: kept?.hasPredecessor == true))
    storage = StorageService(store, views, options.purges, registry: registry) { sockets.poke([.space]) }
    leases = ContainerLeases(volume)
    // Before grants, of which each account has its own budget.
    let elsewhere = (try? registry(false)?.ownersOfHomesElsewhere()) ?? nil
    SubordinateUsers.ofThisMachine.numbers.note(
      owners: store.homeOwners.union(elsewhere.map { Set($0.values) } ?? []))
    // Before grants, which may lead there.
    volumes = try VolumeService(
      store, volume, helper, kept, isReadOnly: options.readOnly, serversFile: options.serversFile,
      log: { log.record($0) }, registry: registry, leases: leases, shapes: shapes
    ) { [volume] home in
      Self.noteApps(ofHome: home, registry, in: volume, shapes)
    }
    grants = try GrantService(
      store, volume, isReadOnly: options.readOnly, kept: kept, log: { log.record($0) },
      changed: { apps in sockets.poke(Set(apps.map(AppTopic.grants))) }, registry: registry)
    volumes.tellOfShares { [grants] in grants.shareAppears($0) }
    consents = ConsentService(
      store, volume, views, grants, isReadOnly: options.readOnly, kept: kept, log: { log.record($0) },
      registry: registry)
    consents.tellApps { sockets.poke([.view($0)]) }
    consents.settle { sockets.settle() }
    if kept?.hasPredecessor == true { consents.expectAgents() }
    do throws(Errno) {
      view = try View(volume, takingOver: kept?.hasPredecessor == true ? Self.wholeTree : nil)
    } catch {
      throw ServeFailure.tree(path: store.path, error)
    }
    do throws(Errno) {
      poolSettings.stalled = { user in
        DaemonLog.write(
          "requests of user \(user) wait in the kernel, for a disk or for what a process of that user holds; "
            + "the user's requests are served apart from others'")
      }
      pool = try WorkerPool(poolSettings, slow: volume.slow)
      ended = try Ended()
    } catch {
      throw ServeFailure.threads(error)
    }
  }

  /// A mount of our own of the store if the options ask for other access times than it has; else nil.
  private static func privateMount(
    of store: FD, _ options: ServeOptions
  ) throws(Errno) -> PrivateMount? {
    let rule = options.accessTimes
    return rule == AccessTimeRule() ? nil : try PrivateMount(of: store, rule)
  }

  private func connect(over directory: FD?) throws {
    let connection = try isSystem ? mountDirectly(over: directory) : mountThroughHelper()
    kept?.keep(connection.fd, as: .connection, view: Self.wholeTree)
    try confine()
    do throws(Errno) {
      let session = try Session(view, over: connection, settings: settings)
      try pool.start()
      try serve(session)
    } catch {
      throw ServeFailure.threads(error)
    }
    // A millisecond usually; a kernel that never begins would leave whoever waits for us without an answer.
    guard view.waitUntilStarted(milliseconds: 20_000) else {
      throw ServeFailure.noAnswer(mountPoint: mountPoint)
    }
    probePassthrough()
  }

  /// The number of the view of the whole tree, which is the first.
  static let wholeTree: UInt32 = 1

  private var settings: ConnectionSettings {
    var settings = ConnectionSettings()
    settings.passthrough = mayPassThrough
    settings.deadlines = store.deadlines
    settings.localLocks = options.localLocks
    return settings
  }

  /// All that takes more is done, and nobody has been answered yet.
  private func confine() throws {
    do throws(Errno) {
      try DaemonFilter.install(isSystem: isSystem)
    } catch {
      throw ServeFailure.confinement(error)
    }
  }

  private func serve(_ session: Session) throws(Errno) {
    let (ended, kept) = (ended, kept)
    try pool.add(session) {
      kept?.mountIsGone()
      ended.wakeup.ring()
    }
    volumes.askUsers { [weak self] volumes in
      self?.users(of: volumes, besides: ProcessID.own) ?? volumes.map { _ in [] }
    }
    noteDevice()
    try MountWatch.start(device.withLock { $0 }, until: ended.wakeup.fd) { ended.wakeup.ring() }
  }

  /// Serves on where another worker has died, with the views that can go on.
  func takeOver(_ apps: [AppTakeover], _ backups: [BackupTakeover], _ files: [FilesTakeover]) throws {
    do {
      try serveOn(apps, backups, files)
    } catch {
      // No connection will say so.
      ended.wakeup.ring()
      throw error
    }
  }

  private func serveOn(
    _ apps: [AppTakeover], _ backups: [BackupTakeover], _ files: [FilesTakeover]
  ) throws {
    let views = [view] + apps.map(\.view) + backups.map(\.run.view) + files.map(\.mounted.view)
    // Before anything that may fail, or each worker that fails would leave more.
    left?.close(besides: views.flatMap(\.descriptorsTakenOver))
    guard let connection = kept?.descriptor(.connection, view: Self.wholeTree), let first = view.firstMessage
    else { throw ServeFailure.lost(mountPoint: mountPoint) }
    try confine()
    do throws(Errno) {
      let session = try Session(view, over: OwnedFD(owning: connection.raw), settings: settings)
      try session.beginAgain(with: first)
      probePassthrough()
      // What is changed through one view concerns all others: they begin before any request is served.
      var begun: [ServingOn] = []
      for app in apps { begun.append(try begin(app)) }
      for backup in backups { try begin(backup).map { begun.append($0) } }
      for view in files { try begin(view).map { begun.append($0) } }
      try session.resume(volume.slow)
      try serve(session)
      for serveOn in begun { try serveOn() }
      volume.tookOver()
      try forgetNamesOfFormerWorkers()
      try pool.start()
      try askAboutLeftNodes(of: views)
    } catch {
      throw ServeFailure.threads(error)
    }
  }

  /// The device number of the mount; nil where it is not known.
  var mountDevice: String? { device.withLock { $0?.description } }

  /// Only the first worker finds its own mount at the mount point for certain.
  private func noteDevice() {
    let known = kept?.mountDevice ?? device.withLock { $0 }
    let found = known ?? (try? MountTable.current())?.top(at: mountPoint)?.device
    device.withLock { $0 = found }
    kept?.mountDevice = found
  }

  /// The kernel gives the number of a mount that is gone to the next filesystem, while this process may take
  /// long to end: nobody takes that one away any more, or takes this daemon for the one that serves it.
  private func forgetDevice() {
    device.withLock { $0 = DeviceNumber.none }
    kept?.mountDevice = DeviceNumber.none
  }

  /// Has changes of the tree that are the daemon's own reach all who look at it.
  var tree: MountedTree {
    MountedTree(store: store, volume: view.volume, views: views, leases: leases, shapes: shapes)
  }

  var isSystem: Bool { store.description.mode == .system }

  /// What `insula status` shows.
  package func report(version: String) -> ServerReport {
    let counts = view.counts
    var report = ServerReport()
    report.mode = store.description.mode.rawValue
    report.mountPoint = mountPoint
    noteDataPath(counts.dataPath, in: &report)
    report.uncachedDirectories = counts.uncachedDirectories
    report.uncachedUsers = counts.uncachedUsers
    report.sealRefusals = counts.sealRefusals
    report.fileHandles = usesHandles
    report.writableCode = store.description.allowsWritableCode
    report.directStart = store.description.allowsDirectStart
    report.appUmask = String(store.description.appUmask, radix: 8)
    report.caseInsensitive = store.description.ignoresCase
    report.allMusic = store.description.offersAllMusic
    report.nodes = counts.nodes
    report.openFiles = counts.openFiles
    report.openDirectories = counts.openDirectories
    report.descriptors = counts.descriptors
    report.locks = counts.locks
    report.requests = pool.requests
    report.requestsByKind = pool.requestsByKind
    report.threads = pool.threadCount
    report.views = views.count + backups.all.count + files.all.count
    report.overBudget = volume.budget.refusals
    report.unconfirmedVolumes = volumes.unconfirmed
    report.version = version
    report.keeper = keeperPID
    report.restarts = kept?.restarts ?? 0
    report.lastRestart = kept?.lastReason?.description
    if report.restarts > 0 { report.lastPauseMilliseconds = kept?.lastPauseMilliseconds }
    noteUpgrade(in: &report)
    return report
  }

  /// Takes the mount away; EBUSY while it is in use, unless `lazily`.
  ///
  /// EINVAL if it is detached already: what lies in its place by now is somebody else's.
  package func unmount(lazily: Bool) throws(Errno) {
    let device = device.withLock { $0 }
    guard let place = MountTable.place(of: device, madeAt: mountPoint) else { throw .EINVAL }
    guard !isSystem else { return try Mount.remove(device, at: place, lazily: lazily) }
    // The helper knows that path alone.
    guard place.hasSameBytes(as: mountPoint) else { throw .EINVAL }
    try helper.removeTree(lazily: lazily)
  }

  /// Returns when the mount is gone and all that came through it is done.
  package func waitUntilUnmounted() {
    _ = try? ended.wakeup.fd.waitUntilReadable(milliseconds: -1)
    forgetDevice()
    // No request waits for a server any more.
    volumes.finish()
    // Whoever has taken the tree away has left nothing for them to come from.
    views.endAll()
    backups.endAll()
    files.endAll(by: helper)
    stopAppSockets()
    grantReadings.stop()
    pool.stop()
    grants.finish()
    consents.finish()
  }
}
