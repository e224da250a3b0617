// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Fuse
internal import Glibc
internal import JSON
package import LinuxIO
internal import Policy
package import Store
internal import Synchronization
internal import Volume

/// Why a mount that is there can't be kept.
package enum ServiceFailure: Error, CustomStringConvertible {
  case controlSocket(directory: String, Errno)

  package var description: String {
    switch self {
    case .controlSocket(let directory, let error):
      "can't create the control socket in \(directory): \(error.message); "
        + "make the directory writable, or set XDG_RUNTIME_DIR to one that is"
    }
  }
}

/// Serves one store from mounting to unmounting: the server, the control socket, the signals.
package enum Service {
  /// What the service needs to know besides the store.
  package struct Settings: Sendable {
    package let mountPoint: String
    package let options: ServeOptions
    package let place: ControlPlace
    /// Whether standard error goes to the log, which is then kept short.
    package let inBackground: Bool
    /// What this program calls itself.
    package let version: String
    /// How another program is told to serve the same: the words after `insula mount`.
    package var words: [String] = []
    /// Where the installed program lies; nil where the running one was started from.
    package var program: String?
    /// What `ready` closes, if anything.
    package var untilReady: FD?
    /// The directory to mount on, which the server closes when it has; nil if there is nothing to mount, or
    /// fusermount3 does it.
    package var directory: FD?
    /// What the processes say to whom they were started by.
    package var environment: [String: String] = [:]

    package init(
      mountPoint: String, options: ServeOptions, place: ControlPlace, inBackground: Bool, version: String
    ) {
      self.mountPoint = mountPoint
      self.options = options
      self.place = place
      self.inBackground = inBackground
      self.version = version
    }
  }

  /// Mounts, or serves on what another program has left; calls `ready` in each process that serves, with
  /// whether it is the first one, and returns when the mount is gone.
  ///
  /// ``DaemonProcess/prepare()`` has been called, and the process has one thread.
  package static func run(
    store: Store, _ settings: Settings, left: LeftService? = nil, ready: (Bool) throws -> Void
  ) throws {
    // Here, so that all workers have it from the keeper.
    try CryptoLibrary.load()
    try SQLiteLibrary.load()
    let isSystem = store.description.mode == .system
    let helper = try self.helper(settings, left, isSystem: isSystem)
    try DaemonCapabilities.dropOthers(isRoots: isSystem || ProcessID.user == 0)
    let kept = try keptState(store, settings, helper, left)
    if let kept {
      if kept.hasPredecessor { TakingOver.begin(kept) }
      DaemonProcess.watchParent()
    }
    do {
      try JoinableThread.run(name: "service") { try serve(store, settings, helper, kept, ready) }
    } catch  where kept?.hasPredecessor == true {
      giveWay(error)
    }
  }

  /// Ends a worker that can't go on where another one has died, so that the keeper starts yet another one.
  ///
  /// Programs use the mount, and what was missing, memory or room for a thread, may be there soon.
  private static func giveWay(_ error: any Error) -> Never {
    DaemonLog.write("can't serve on: \(error)")
    abort()
  }

  /// Begins to serve in the process that is to, or goes on where another one has died.
  private static func serve(
    _ store: Store, _ settings: Settings, _ helper: MountHelper, _ kept: KeptState?,
    _ ready: (Bool) throws -> Void
  ) throws {
    try keepLease(of: store, settings, helper, kept)
    // Before anything else is opened.
    let left = kept.flatMap { $0.hasPredecessor ? LeftDescriptors($0, store) : nil }
    FormerWorkers.watch { DyingWorker($0) != nil }
    Leftovers.ofProcess.servesOthers { DaemonLog.write($0) }
    if kept?.hasPredecessor == true { store.goesOn() }
    let log = try eventLog(store, settings)
    let apps = try AppService(store, settings, log, isSuccessor: kept?.hasPredecessor == true)
    let server = try Server.start(
      store: store, log: log,
      registry: { (making) throws(StoreError) in try making ? apps.openRegistry() : apps.knownRegistry() },
      mountPoint: settings.mountPoint, settings.directory, options: settings.options, helper: helper,
      kept: kept, left: left)
    apps.serve(server.tree, server.grants, server.consents, server.storage, server.volumes)
    store.announce(mountPoint: settings.mountPoint)
    let launches = LaunchService(store, server, apps, log, mountPoint: settings.mountPoint)
    let backups = BackupService(store, server, apps, mountPoint: settings.mountPoint)
    let files = FilesService(store, server, apps)
    let services = Services(
      store: store, server: server, apps: apps, launches: launches, backups: backups, files: files, log: log,
      settings: settings)
    let control: ListeningPlace
    let updates: UpdateThread
    let purges: PurgeThread
    do {
      if let kept, kept.hasPredecessor {
        try server.takeOver(
          launches.takeovers(kept), server.takeoversOfBackups(kept), server.takeoversOfFiles(kept, apps))
        server.consents.began()
        kept.serves()
      }
      control = try listen(services, kept)
      apps.recoverHomes()
      server.consents.tellAgents { [weak answering = control.server] in answering?.poke(callersOf: $0) }
      try control.server.start()
      updates = try UpdateThread(apps, server.views)
      purges = try PurgeThread(apps, settings.options.purges, settings.options.removed)
      try server.storage.start()
      try startSignals(store, server, settings)
      if settings.inBackground { try DaemonLog.redirect(in: store.state) }
      let isFirst = kept?.hasPredecessor != true
      TakingOver.end()
      if isFirst {
        GaveUp.forget(in: store.state)
        if let place = settings.options.files { try files.mountOwn(at: place, settings.options.languages) }
      }
      try ready(isFirst)
      if isFirst { kept?.serves() }
    } catch {
      if kept?.hasPredecessor == true { giveWay(error) }
      // Nobody would know of this mount, so it must not stay.
      try? server.unmount(lazily: true)
      server.waitUntilUnmounted()
      log.finish()
      throw error
    }
    noteBegin(store, settings, kept, log)
    server.waitUntilUnmounted()
    updates.stop()
    purges.stop()
    let end = monotonicNanoseconds() &+ 20_000_000_000
    HomeWork.ofProcess.finish(milliseconds: millisecondsLeft(until: end))
    UserWork.ofProcess.finish(milliseconds: millisecondsLeft(until: end))
    server.storage.stop()
    kept?.endsServing()
    DaemonLog.write("\(store.path) is unmounted")
    log.record(LogEntry(now: .unmounted, detail: "from \(settings.mountPoint)"))
    log.finish()
    control.close()
    store.unlock()
  }

  /// Keeps the lease on the store, if it has one; whatever is done to the store afterwards ends with it.
  private static func keepLease(
    of store: Store, _ settings: Settings, _ helper: MountHelper, _ kept: KeptState?
  ) throws {
    guard let lease = store.lease else { return }
    StoreLease.whenLost {
      // A keeper does the rest; until this process has ended, its threads may write.
      if kept != nil { _exit(Keeper.leaseIsLost) }
      giveUp(
        store, settings, helper, nil, "the lease on the store is over, and another machine may have it",
        isLeaseLost: true)
      _exit(1)
    }
    switch lease.continueHere() {
    case .done, .failed: break
    case .lost, .released: lease.deadline.putOff(to: 0)
    }
    lease.deadline.check()
    do throws(Errno) { try lease.startRenewing { DaemonLog.write($0) } } catch {
      throw ServeFailure.threads(error)
    }
  }

  private static func eventLog(_ store: Store, _ settings: Settings) throws -> EventLog {
    do throws(Errno) {
      return try EventLog(store, journal: Journal(settings.environment))
    } catch {
      throw ServeFailure.threads(error)
    }
  }

  /// Notes that the store is served, or is again.
  private static func noteBegin(_ store: Store, _ settings: Settings, _ kept: KeptState?, _ log: EventLog) {
    guard let kept, kept.hasPredecessor else {
      DaemonLog.write("\(store.path) is mounted at \(settings.mountPoint)")
      return log.record(
        LogEntry(
          now: .mounted, pid: ProcessID.own, detail: "at \(settings.mountPoint), insula \(settings.version)"))
    }
    let pause = "serving again after \(kept.lastPauseMilliseconds) ms"
    DaemonLog.write(pause)
    let reason = kept.lastReason?.description ?? "ended"
    log.record(
      LogEntry(
        now: .replaced, pid: ProcessID.own, detail: "\(reason), \(pause), insula \(settings.version)"))
  }

  /// Starts the keeper where there can be one; returns in the process that is to serve.
  private static func keptState(
    _ store: Store, _ settings: Settings, _ helper: MountHelper, _ left: LeftService?
  ) throws -> KeptState? {
    guard Keeper.isPossible else { return nil }
    do throws(Errno) {
      let kept = try keptState(left, settings)
      // A number that is the keeper's is never closed by a worker, also if it stands for something else by
      // then.
      let closed = [settings.untilReady, settings.directory].map { $0?.raw }
      for descriptor in FD.allOpen where !closed.contains(descriptor.raw) {
        if left?.open.contains(descriptor.raw) != true { kept.keep(descriptor, as: .keepers) }
      }
      if left == nil {
        if let lock = store.lockDescriptor { kept.keep(lock, as: .storeLock) }
        kept.keep(helper.fd, as: .remover)
      }
      let program = NextProgram(path: settings.program, words: settings.words)
      let isSystem = store.description.mode == .system
      let locks = isSystem && settings.options.passthrough ? LockWatch(kept.lockHolders) : nil
      let keeper = Keeper(
        kept, program, restarts: settings.options.restarts, helper, locks, ownObjects: { store.ownObjects }
      ) { () throws(Errno) in
        try helper.replace(for: settings.mountPoint, isSystem: isSystem, program.rehearsal)
      }
      return try keeper.start { reason, isLeaseLost in
        giveUp(store, settings, helper, kept, reason, isLeaseLost: isLeaseLost)
      }
    } catch {
      throw ServeFailure.threads(error)
    }
  }

  /// What another keeper has left, or new.
  private static func keptState(_ left: LeftService?, _ settings: Settings) throws(Errno) -> KeptState {
    if let left { return left.kept }
    return try KeptState(layout: KeptLayout.current, store: LeftService.store(settings.environment))
  }

  /// Takes the mount away, so that nobody waits for ever for what is not served any more.
  private static func giveUp(
    _ store: Store, _ settings: Settings, _ helper: MountHelper, _ kept: KeptState?, _ reason: String,
    isLeaseLost: Bool
  ) {
    let report = isLeaseLost ? "" : " Please report the lines above;"
    DaemonLog.alert(
      "\(reason); removing the mount \(settings.mountPoint).\(report) 'insula mount' mounts the store again",
      inBackground: settings.inBackground)
    // No worker is left that would; threads of one that were left behind have the store's lock as well.
    defer { if kept != nil { store.unlock() } }
    let entry = LogEntry(now: .gaveUp, detail: reason)
    Journal(settings.environment)?.send([entry])
    if !isLeaseLost {
      GaveUp.note(reason, in: store.state)
      try? StoreLog(store).append([entry])
    }
    var place = settings.mountPoint
    if let kept {
      for left in KeptFiles.all(in: kept) { left.files.mount.remove(by: helper) }
      // A mount that is detached ends with us.
      guard let found = MountTable.place(of: kept.mountDevice, madeAt: place) else { return }
      place = found
    }
    do throws(Errno) {
      if store.description.mode == .system {
        try Mount.remove(kept?.mountDevice, at: place, lazily: true)
      } else {
        try helper.removeTree(lazily: true)
      }
    } catch {
      DaemonLog.write("can't remove the mount: \(error.message)")
    }
  }

  /// Who mounts and unmounts for the daemon; the one of another keeper has ended with that, if its process
  /// has.
  private static func helper(
    _ settings: Settings, _ left: LeftService?, isSystem: Bool
  ) throws -> MountHelper {
    if let socket = left?.kept.descriptor(.remover), (try? socket.hasHungUp()) == false {
      return MountHelper(adopting: socket)
    }
    let program = NextProgram(path: settings.program, words: settings.words)
    return try MountHelper.start(for: settings.mountPoint, isSystem: isSystem, program.rehearsal)
  }

  private static func listen(
    _ services: Services, _ kept: KeptState?
  ) throws -> ListeningPlace {
    let (store, settings) = (services.store, services.settings)
    do throws(Errno) {
      let budget = services.server.volume.budget
      return try settings.place.listen(for: store, budget: budget, kept: kept) { call in
        services.answer(call)
      }
    } catch {
      throw ServiceFailure.controlSocket(
        directory: settings.place.ownDirectory ?? store.path + "/state", error)
    }
  }

  private static func startSignals(_ store: Store, _ server: Server, _ settings: Settings) throws(Errno) {
    try SignalThread.start {
      guard settings.inBackground, (try? DaemonLog.shorten(in: store.state)) != nil else { return }
      try? DaemonLog.redirect(in: store.state)
    } orphaned: {
      DaemonLog.write(
        "the process that replaces this one when it dies has ended; the mount goes on, but would not outlive "
          + "this process. Unmount the store and mount it again when that suits you")
    } action: { times in
      guard times == 1 else {
        DaemonLog.write("asked to end a second time; ending without unmounting")
        exit(1)
      }
      end(server)
    }
  }

  /// Unmounts; those who still use the mount may finish, and nobody new gets in.
  private static func end(_ server: Server) {
    server.views.endAll()
    server.backups.endAll()
    do throws(Errno) {
      try server.unmount(lazily: false)
    } catch {
      DaemonLog.write("can't unmount yet (\(error.message)): detached; ends when the mount is no longer used")
      try? server.unmount(lazily: true)
    }
  }
}
