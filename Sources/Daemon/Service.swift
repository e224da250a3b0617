// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Fuse
internal import Glibc
internal import JSON
package import LinuxIO
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
    let remover = isSystem ? nil : try self.remover(settings, left)
    try DaemonCapabilities.dropOthers(isRoots: isSystem || ProcessID.user == 0)
    let kept = try keptState(store, settings, remover, left)
    if let kept {
      if kept.hasPredecessor { TakingOver.begin(kept) }
      DaemonProcess.watchParent()
    }
    do {
      try JoinableThread.run(name: "service") { try serve(store, settings, remover, kept, ready) }
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
    _ store: Store, _ settings: Settings, _ remover: MountRemover?, _ kept: KeptState?,
    _ ready: (Bool) throws -> Void
  ) throws {
    // Before anything else is opened.
    let left = kept.flatMap { $0.hasPredecessor ? LeftDescriptors($0, store) : nil }
    let log = try eventLog(store, settings)
    let apps = try AppService(store, settings, log)
    let server = try Server.start(
      store: store, log: log,
      registry: { (making) throws(StoreError) in try making ? apps.openRegistry() : apps.knownRegistry() },
      mountPoint: settings.mountPoint, options: settings.options, remover: remover,
      kept: kept, left: left)
    apps.serve(server.tree, server.grants, server.consents, server.storage)
    store.announce(mountPoint: settings.mountPoint)
    let launches = LaunchService(store, server, apps, log, mountPoint: settings.mountPoint)
    let backups = BackupService(store, server, apps, mountPoint: settings.mountPoint)
    let control: ListeningPlace
    let updates: UpdateThread
    let purges: PurgeThread
    do {
      if let kept, kept.hasPredecessor {
        try server.takeOver(launches.takeovers(kept), server.takeoversOfBackups(kept))
        server.consents.began()
        kept.serves()
      }
      control = try listen(store, server, apps, launches, backups, log, settings, kept)
      server.consents.tell { [weak answering = control.server] in answering?.poke() }
      try control.server.start()
      updates = try UpdateThread(apps, server.views)
      purges = try PurgeThread(apps, settings.options.purges)
      try server.storage.start()
      try startSignals(store, server, settings)
      if settings.inBackground { try DaemonLog.redirect(in: store.state) }
      let isFirst = kept?.hasPredecessor != true
      TakingOver.end()
      if isFirst { GaveUp.forget(in: store.state) }
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
    server.storage.stop()
    kept?.endsServing()
    DaemonLog.write("\(store.path) is unmounted")
    log.record(LogEntry(now: .unmounted, detail: "from \(settings.mountPoint)"))
    log.finish()
    control.close()
    store.unlock()
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
    _ store: Store, _ settings: Settings, _ remover: MountRemover?, _ left: LeftService?
  ) throws -> KeptState? {
    guard Keeper.isPossible else { return nil }
    do throws(Errno) {
      let kept = try keptState(left, settings)
      // A number that is the keeper's is never closed by a worker, also if it stands for something else by
      // then.
      for descriptor in FD.allOpen where descriptor.raw != settings.untilReady?.raw {
        if left?.open.contains(descriptor.raw) != true { kept.keep(descriptor, as: .keepers) }
      }
      if left == nil {
        if let lock = store.lockDescriptor { kept.keep(lock, as: .storeLock) }
        if let remover { kept.keep(remover.fd, as: .remover) }
      }
      let program = NextProgram(path: settings.program, words: settings.words)
      let keeper = Keeper(kept, program, restarts: settings.options.restarts)
      return try keeper.start { reason in
        giveUp(store, settings, remover, kept.mountDevice, reason)
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
    _ store: Store, _ settings: Settings, _ remover: MountRemover?, _ device: DeviceNumber?,
    _ reason: String
  ) {
    DaemonLog.alert(
      "\(reason); removing the mount \(settings.mountPoint). Please report the lines above; "
        + "'insula mount' mounts the store again", inBackground: settings.inBackground)
    GaveUp.note(reason, in: store.state)
    // No worker is left that would.
    let entry = LogEntry(now: .gaveUp, detail: reason)
    Journal(settings.environment)?.send([entry])
    try? StoreLog(store).append([entry])
    // A mount that is detached ends with us.
    guard MountTable.isOnTop(device, at: settings.mountPoint) else { return }
    do throws(Errno) {
      if let remover {
        try remover.remove(lazily: true)
      } else {
        try Mount.remove(at: settings.mountPoint, lazily: true)
      }
    } catch {
      DaemonLog.write("can't remove the mount: \(error.message)")
    }
  }

  /// Who takes a user's mount away; the one of another keeper has ended with that, if its process has.
  private static func remover(_ settings: Settings, _ left: LeftService?) throws -> MountRemover {
    if let socket = left?.kept.descriptor(.remover), (try? socket.hasHungUp()) == false {
      return MountRemover(adopting: socket)
    }
    return try MountRemover.start(for: settings.mountPoint)
  }

  private static func listen(
    _ store: Store, _ server: Server, _ apps: AppService, _ launches: LaunchService,
    _ backups: BackupService, _ log: EventLog, _ settings: Settings, _ kept: KeptState?
  ) throws -> ListeningPlace {
    do throws(Errno) {
      return try settings.place.listen(for: store, budget: server.volume.budget, kept: kept) { call in
        answer(call, store, server, apps, launches, backups, log, settings)
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

  /// Runs on the control socket's thread: what looks at the disk or takes its time is a job.
  private static func answer(
    _ call: ControlCall, _ store: Store, _ server: Server, _ apps: AppService, _ launches: LaunchService,
    _ backups: BackupService, _ log: EventLog, _ settings: Settings
  ) -> ControlAnswer {
    let queries = AppQueryHandler(store: store, apps: apps, caller: call.caller)
    switch call.request {
    case .status: return .reply(.status(status(store, server, settings)))
    case .unmount(let lazily):
      guard call.caller.isPrivileged else {
        return .refusal("only root and the daemon's owner may do this")
      }
      return .job(.endings) { _ in unmount(server, lazily: lazily, for: call.caller) }
    case .restart:
      guard call.caller.isPrivileged else {
        return .refusal("only root and the daemon's owner may do this")
      }
      return .job(.endings) { _ in server.restart() }
    case .change(let request): return apps.answer(request, call)
    case .grant(let request): return server.grants.answer(request, call)
    case .grants(let identifier, let user, let after):
      return .job(.queries) { _ in server.grants.list(identifier, of: user, after: after, for: call.caller) }
    case .run(let identifier, let user): return launches.run(identifier, for: user, call)
    case .backup(let request): return backups.answer(request, call)
    case .running(let user): return .job(.queries) { _ in launches.list(of: user, for: call.caller) }
    case .end(let identifier, let user, let signal):
      return launches.end(identifier, of: user, with: signal, for: call.caller)
    case .ended(let ending): return launches.ended(ending, call)
    case .apps(let user): return .job(.queries) { _ in queries.apps(of: user) }
    case .app(let identifier, let user):
      return .job(.queries) { _ in queries.app(identifier, of: user) }
    case .path(let place, let identifier, let user):
      return .job(.queries) { _ in queries.path(of: place, identifier, of: user) }
    case .documents(let user, let after):
      return .job(.queries) { _ in queries.documents(of: user, after: after) }
    case .choose(let identifier, let type, let user):
      return .job(.grants) { _ in queries.choose(identifier, for: type, of: user) }
    case .log(let query): return .job(.queries) { _ in log.answer(query, for: call.caller) }
    case .storage(let request):
      return .job(.storage) { reporter in
        server.storage.report(request, by: call.callerIdentity()) { reporter.isCancelled }
      }
    case .roots: return .job(.queries) { _ in apps.roots() }
    case .trace: return .reply(trace(call, server))
    case .traced:
      return .reply(
        server.pool.traces.end(call.caller.pid, of: call.caller.account).map(ControlReply.requests)
          ?? .failure(ControlFailure("this process is not traced", .ESRCH)))
    // The connection's own business, which has nothing to do with the store.
    case .pass: return .reply(.done)
    case .endpoint: return server.endpoint(call)
    case .consent(let request): return server.consents.answer(request, call)
    case .nextTask(let ofStarted): return server.consents.nextTask(ofStarted: ofStarted, call)
    case .nextReading(let adds): return server.consents.nextReading(adds: adds, call)
    case .answerTask(let number, let answer): return server.consents.answerTask(number, answer, call)
    case .own, .space, .grantChange, .requestConsent, .openPanel, .items, .addPhoto:
      return .refusal("only an app can ask this, through the socket of its own")
    }
  }

  private static func trace(_ call: ControlCall, _ server: Server) -> ControlReply {
    guard let process = call.process else {
      return .failure(ControlFailure("this kernel does not tell who asks; Linux 6.5 does", .EOPNOTSUPP))
    }
    do throws(Errno) {
      try server.pool.traces.begin(call.caller.pid, of: call.caller.account, process)
      return .done
    } catch {
      return .failure(ControlFailure("too many processes are traced; try again later", error))
    }
  }

  /// While apps run the mount is busy; who wants it to go all the same wants them to end.
  private static func unmount(_ server: Server, lazily: Bool, for caller: ControlCaller) -> ControlReply {
    let backups = server.backups.all.map { "pid \($0.pid)" }
    guard backups.isEmpty || lazily else {
      return .failure(
        ControlFailure(
          "a backup is being made (\(backups.joined(separator: ", "))); wait for its end", .EBUSY))
    }
    server.backups.endAll()
    let running = server.views.all()
    guard !running.isEmpty else { return takeAway(server, lazily: lazily) }
    let apps = running.map(RunningApp.init)
    guard lazily else {
      return .failure(ControlFailure("apps are running:\n" + running.lines, .appsRun(apps)))
    }
    server.views.endAll(by: caller.uid)
    let reply = takeAway(server, lazily: true)
    return reply == .done ? .running(apps) : reply
  }

  private static func takeAway(_ server: Server, lazily: Bool) -> ControlReply {
    do throws(Errno) {
      try server.unmount(lazily: lazily)
      return .done
    } catch {
      return .failure(ControlFailure(error.message, error))
    }
  }

  private static func status(_ store: Store, _ server: Server, _ settings: Settings) -> DaemonStatus {
    var status = DaemonStatus(
      pid: ProcessID.own, store: store.path, uuid: store.description.uuid,
      mode: store.description.mode.rawValue, mountPoint: settings.mountPoint,
      counts: JSONValue.fields(of: server.report(version: settings.version)))
    status.identity = store.identity
    status.mountDevice = server.mountDevice
    return status
  }
}
