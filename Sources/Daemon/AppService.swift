// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// What a daemon does to apps while it serves their store.
final class AppService: Sendable {
  let store: Store
  private let log: EventLog
  let isReadOnly: Bool
  /// Why this process does not know which apps there are; nil where it does.
  private let whyUnknown: StoreError?
  /// Made with the first request that needs it: a full disk is no reason not to mount a store.
  private let registry: Mutex<Registry?>
  /// Set once it is mounted.
  let tree = Mutex<MountedTree?>(nil)
  /// What users have granted apps, and what they have consented to: both go with the apps.
  private let trust = Mutex<(grants: GrantService, consents: ConsentService)?>(nil)
  private let volumes = Mutex<VolumeService?>(nil)
  /// What is told of the room that apps take.
  private let storage = Mutex<StorageService?>(nil)
  /// Whether a thread is about to do that for what has ended in homes.
  let isNotingLater = Atomic(false)

  /// Before the tree is mounted: what an earlier daemon was stopped in is ended or taken back.
  ///
  /// Where another worker has died, programs use the mount: a registry that a later version has changed
  /// meanwhile, or that is damaged, does not take it from them. Files are served without apps then.
  init(_ store: Store, _ settings: Service.Settings, _ log: EventLog, isSuccessor: Bool) throws {
    self.store = store
    self.log = log
    isReadOnly = settings.options.readOnly
    let registry: Registry?
    do throws(StoreError) {
      registry = try Registry.existing(of: store)
      whyUnknown = nil
    } catch {
      guard isSuccessor, error.keepsAppsUnknown else { throw error }
      registry = nil
      let unknown = StoreError.appsUnknown(error.kind, reason: error.description)
      whyUnknown = unknown
      DaemonLog.write("\(unknown)")
    }
    if let registry, !isReadOnly { try Self.recover(store, registry) }
    self.registry = Mutex(registry)
  }

  /// What can't be ended now is ended before the next change.
  ///
  /// For want of room for example: until then its paths are read-only (``Registry/bundles()``), and that is
  /// no reason to serve nobody. So it is with what lies in homes, which is ended when others are served
  /// (``recoverHomes()``).
  private static func recover(_ store: Store, _ registry: Registry) throws(AppFailure) {
    var failures: [AppFailure]
    do throws(AppFailure) {
      failures = try AppRequestHandler(store, registry).recover(.machine, clearing: false)
    } catch {
      if case .store(.registryDamaged) = error { throw error }
      failures = [error]
    }
    for failure in failures {
      DaemonLog.write(
        "can't complete a change of an app that was interrupted: \(failure); "
          + "the next install, update or uninstall tries again")
    }
  }

  /// Why files are served without apps; nil where they are not.
  var reasonForNoApps: String? {
    guard case .appsUnknown(_, let reason)? = whyUnknown else { return nil }
    return reason
  }

  /// Removes what an earlier daemon has left of that, while this one serves already.
  func clear() {
    do {
      guard !isReadOnly, let registry = try knownRegistry() else { return try store.removeLeft() }
      // Apps may run already: another worker has died, or another program has taken over.
      defer {
        reconcileTrust()
        noteContainers()
      }
      let served = tree.withLock { $0 }.map { self.handler(registry, $0) }
      let handler = served ?? AppRequestHandler(store, registry)
      try handler.clear(.machine)
      try handler.forgetNetworkTeams()
    } catch {
      DaemonLog.write(
        "can't remove what an interrupted change of an app, or an earlier version, has left: \(error)")
    }
  }

  /// The registry, which is made if there is none.
  func openRegistry() throws(StoreError) -> Registry {
    if let whyUnknown { throw whyUnknown }
    return try registry.withLock { (known) throws(StoreError) in
      if let known { return known }
      let made = try Registry(of: store)
      known = made
      return made
    }
  }

  /// The registry if the store has one by now, be it by a command's doing.
  func knownRegistry() throws(StoreError) -> Registry? {
    if let whyUnknown { throw whyUnknown }
    return try registry.withLock { (known) throws(StoreError) in
      if known == nil { known = try Registry.existing(of: store) }
      return known
    }
  }

  /// Why nothing that was decided under a user's number is for them: it is another account's, whose number
  /// has changed since the store is served.
  func reasonToDecideNothing(for user: UInt32) -> ControlFailure? {
    guard store.description.mode == .system, let registry = try? knownRegistry() else { return nil }
    do throws(StoreError) {
      try registry.requireOwnDecisions(of: user)
      return nil
    } catch {
      return ControlFailure(error)
    }
  }

  /// From here on, changes reach those who look at the tree, and what was granted to apps that go is taken
  /// back.
  func serve(
    _ tree: MountedTree, _ grants: GrantService, _ consents: ConsentService, _ storage: StorageService,
    _ volumes: VolumeService
  ) {
    self.volumes.withLock { $0 = volumes }
    self.tree.withLock { $0 = tree }
    self.storage.withLock { $0 = storage }
    trust.withLock { $0 = (grants, consents) }
    HomeWork.ofProcess.tellOfChanges { [weak self] in self?.noteLater() }
    volumes.tellOfHomes { [weak self] home in self?.recover(inHome: home) }
  }

  /// What goes with the apps; nil before the tree is mounted.
  var services: (grants: GrantService, consents: ConsentService)? { trust.withLock { $0 } }

  func reconcileTrust() {
    let trust = services
    trust?.grants.reconcile()
    trust?.consents.reconcile()
  }

  /// The containers of the store, through which questions about them go too.
  func containers() throws(StoreError) -> Containers {
    let registry = try openRegistry()
    guard let tree = tree.withLock({ $0 }) else { return try Containers(store, registry) }
    return try tree.containers(registry)
  }

  /// Apps or containers may have changed: the volume learns which apps may have names with a dot.
  ///
  /// `home` is one on whose thread this is, or whose user waits for it.
  func noteContainers(in home: String? = nil) {
    guard let tree = tree.withLock({ $0 }) else { return }
    do throws(StoreError) {
      guard let registry = try knownRegistry() else { return }
      try tree.noteContainers(registry, in: home)
    } catch {
      DaemonLog.write("can't find out whose containers there are: \(error)")
    }
  }

  /// What follows from a request to change something.
  ///
  /// The bundle is the caller's own open directory: no path of theirs is walked here.
  func answer(_ request: AppRequest, _ call: ControlCall) -> ControlAnswer {
    guard !isReadOnly else {
      return .refusal("the store is mounted read-only; mount it read-write first", .EROFS)
    }
    guard let tree = tree.withLock({ $0 }) else { return .refusal("the mount is not ready yet", .EAGAIN) }
    return .job(request.queue) { [self] reporter in
      let caller = call.callerIdentity()
      defer {
        // A purge changes neither apps nor containers.
        if request.queue == .changes {
          // First: what is taken back waits for nobody's home.
          reconcileTrust()
          noteContainers()
        }
      }
      let registry: Registry
      do throws(StoreError) {
        // Without a registry nobody has decided anything.
        if case .forget(let former) = request, former.removedHome == nil, try knownRegistry() == nil {
          return .done
        }
        registry = try openRegistry()
      } catch {
        return .failure(ControlFailure(error))
      }
      let handler = handler(registry, tree)
      let wait = InstallWait(progress: { reporter.report($0) }, isCancelled: { reporter.isCancelled })
      if case .assign(let team, let root) = request {
        return assign(team, to: root, by: caller, handler, tree)
      }
      guard let bundle = call.descriptor else {
        if case .forget(let former) = request {
          return ControlReply { () throws(ControlFailure) in try forget(former, by: caller, handler) }
        }
        let reply = handler.reply(to: request, on: nil, by: caller, wait)
        if case .purged(let report) = reply { noteUsage(report) }
        return reply
      }
      do throws(Errno) {
        return try bundle.use { (fd) throws(Errno) in
          handler.reply(to: request, on: fd, by: caller, wait)
        }
      } catch {
        return .failure(ControlFailure(error.message, error))
      }
    }
  }

  /// What was forgotten counts no more for what runs and is mounted either.
  private func forget(
    _ former: FormerUser, by caller: CallerIdentity, _ handler: AppRequestHandler
  ) throws(ControlFailure) -> ControlReply {
    let forgotten = try handler.forget(former, by: caller)
    guard forgotten.parts.contains(.decisions) else { return .done }
    let unsettled = trust.withLock { $0 }?.consents.forget(former.user)
    volumes.withLock { $0 }?.removeForgotten(of: former.user)
    removeLeft()
    // What goes is noted, with names that are the former holder's.
    if forgotten.parts.contains(.log) {
      do throws(StoreError) { try log.forget(former.user) } catch { throw ControlFailure(error) }
    }
    if let unsettled { throw unsettled }
    return former.successor == nil ? .done : .removed(RemovedReport(left: forgotten.aside))
  }

  func handler(_ registry: Registry, _ tree: MountedTree) -> AppRequestHandler {
    AppRequestHandler(
      store, registry, observer: tree, log: { [log] in log.record($0) },
      forgetLog: { [log] (user) throws(StoreError) in try log.forget(user) },
      containers: { () throws(StoreError) in try tree.containers(registry) })
  }

  /// Deletes what was taken out of the tree; nobody waits for that, and the next daemon deletes what is left.
  private func removeLeft() {
    do throws(StoreError) { try store.removeLeft() } catch {
      DaemonLog.write("can't delete what was taken out of the tree: \(error)")
    }
  }

  /// Throws away what apps can make again, where nobody has asked for it; whether there was anything.
  @discardableResult
  func purge(
    _ request: PurgeRequest, because reason: String, reaches: @escaping (_ path: String) -> Bool,
    begins: @escaping (_ user: UInt32) -> Bool, _ isCancelled: @escaping () -> Bool
  ) -> Bool {
    guard !isReadOnly, let tree = tree.withLock({ $0 }), let registry = try? knownRegistry() else {
      return false
    }
    do throws(ControlFailure) {
      let report = try handler(registry, tree).purge(
        request, by: .ourselves, because: reason, reaches: reaches, begins: begins,
        isCancelled: isCancelled)
      noteUsage(report)
      return report.freed.bytes > 0
    } catch {
      if !isCancelled() { DaemonLog.write("can't purge what apps can make again: \(error.message)") }
      return false
    }
  }

  /// Deletes removed containers whose time is over, as far as somebody goes, of users of whom `begins` says
  /// so; gives why some of them stay.
  func deleteOldRemoved(
    _ limit: RemovedLimit, _ scope: RecoveryScope, begins: (_ user: UInt32) -> Bool = { _ in true },
    _ isCancelled: @escaping () -> Bool
  ) -> String? {
    guard let tree = tree.withLock({ $0 }), let registry = try? knownRegistry(),
      (try? registry.removedContainers())?.isEmpty == false
    else { return nil }
    let pace = Pace(most: Pace.usually)
    do throws(ControlFailure) {
      try handler(registry, tree).deleteOldRemoved(limit, scope, begins: begins) { () throws(Errno) in
        try pace.rest(orEndIf: isCancelled)
      }
      return nil
    } catch {
      return isCancelled() || pace.isOver ? nil : error.message
    }
  }

  private func noteUsage(_ report: PurgeReport) { storage.withLock { $0 }?.purged(report) }

  /// How full the store's disk is.
  func diskSpace() throws(Errno) -> DiskSpace { try store.tree.diskSpace() }

  /// The roots that the store trusts, which are no secret: who may not read the store asks for them.
  func roots() -> ControlReply {
    do throws(AppFailure) {
      var text: [UInt8] = []
      // As many as there is room for in a reply.
      for root in try StoreTrust.read(store).roots where text.count < 512 << 10 {
        text += (try? root.pem()) ?? []
      }
      return .roots(String(decoding: text, as: UTF8.self))
    } catch {
      return .failure(ControlFailure(error))
    }
  }

  // MARK: Updates that wait

  /// Updates that are just being put in place, by the names of their copies.
  private let placing = Condition<Set<String>>([])
  /// Those that could not be put in place and wait on.
  private let postponed = Mutex(PostponedUpdates())

  /// Puts all updates in place whose apps run no more; `isOver` is asked before each.
  ///
  /// This is done whenever any app of anybody ends, so those that have failed are left out for a while.
  /// Those in homes outside of the store are put there by the threads of these homes, and all others by
  /// threads of their users: who holds a file of an app keeps the thread that removes it.
  func placeUpdates(isOver: @escaping @Sendable () -> Bool) {
    guard !isReadOnly, let registry = try? knownRegistry(),
      let waiting = try? registry.waitingUpdates()
    else { return }
    let due = postponed.withLock { $0.due(among: waiting.map(\.name), at: monotonicNanoseconds()) }
    let updates = Dictionary(waiting.map { ($0.name, $0) }) { first, _ in first }
    let outside = (try? registry.namesOfHomesElsewhere()) ?? []
    for update in due.compactMap({ updates[$0] }) where !isOver() {
      let name = RecoveryScope.home(in: update.app.path.utf8)
      if let name, outside.contains(name), let home = store.homeElsewhere(named: name) {
        HomeWork.ofProcess.begin(in: home, as: update.name) { [self] in place(update, registry, isOver) }
      } else {
        let line = update.app.user.map { UserWork.Line.user($0) } ?? .app(update.app.path)
        UserWork.ofProcess.begin(for: line, as: update.name) { [self] in
          if !isOver() { place(update, registry, isOver) }
        }
      }
    }
  }

  /// Puts the update of an app in place that is about to be started, if one waits and it does not run.
  func placeUpdate(of app: InstalledApp, isOver: () -> Bool) {
    guard !isReadOnly, let registry = try? knownRegistry(),
      let waiting = try? registry.waitingUpdate(of: app.identifier, for: app.user)
    else { return }
    place(waiting, registry, isOver)
  }

  func hasWaitingUpdate(of app: InstalledApp) -> Bool {
    guard !isReadOnly, let registry = try? knownRegistry() else { return false }
    return (try? registry.waitingUpdate(of: app.identifier, for: app.user)) ?? nil != nil
  }

  private func place(_ waiting: WaitingUpdate, _ registry: Registry, _ isOver: () -> Bool) {
    guard let tree = tree.withLock({ $0 }), tree.users(of: waiting.before.path).isEmpty else { return }
    // Whoever comes while somebody is at it waits for what comes of that.
    while !placing.withLock({ $0.insert(waiting.name).inserted }) {
      _ = placing.wait(milliseconds: 100) { !$0.contains(waiting.name) }
      if isOver() { return }
    }
    defer { placing.change { _ = $0.remove(waiting.name) } }
    // What another thread has done with it, it need not be done again.
    let current = try? registry.waitingUpdate(of: waiting.app.identifier, for: waiting.app.user)
    guard current?.name == waiting.name else { return }
    let handler = handler(registry, tree)
    switch handler.place(waiting) {
    case .postponed(_, let failure):
      let reason = "\(failure)"
      let isNew = postponed.withLock {
        $0.postpone(waiting.name, for: reason, at: monotonicNanoseconds())
      }
      if isNew { handler.noteFailure(of: waiting, "it is tried again later: \(reason)") }
    case .updated:
      reconcileTrust()
      noteContainers(in: Homes.name(in: waiting.app.path))
    case .dropped, nil: break
    }
  }
}

extension StoreError {
  /// Whether the registry can't be read by this program, now or later.
  fileprivate var keepsAppsUnknown: Bool {
    switch self {
    case .registryNewer, .registryDamaged, .registryOfOthers: true
    default: false
    }
  }
}
