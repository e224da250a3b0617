// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Apps
internal import Bundles
package import LinuxIO
package import Policy
package import Store

/// Changes the apps of a store: for a daemon, and for a command on a store that nobody serves.
package struct AppRequestHandler: Sendable {
  let store: Store
  let registry: Registry
  let observer: any TreeObserver
  let log: EventRecorder
  /// Deletes what is in the log of a user.
  let forgetLog: @Sendable (UInt32) throws(StoreError) -> Void
  /// Where containers are made.
  let containers: @Sendable () throws(StoreError) -> Containers

  package init(
    _ store: Store, _ registry: Registry, observer: any TreeObserver, log: @escaping EventRecorder,
    forgetLog: @escaping @Sendable (UInt32) throws(StoreError) -> Void,
    containers: @escaping @Sendable () throws(StoreError) -> Containers
  ) {
    self.store = store
    self.registry = registry
    self.observer = observer
    self.log = log
    self.forgetLog = forgetLog
    self.containers = containers
  }

  /// On a store that nobody serves.
  package init(_ store: Store, _ registry: Registry) {
    let log = StoreLog(store)
    self.init(
      store, registry, observer: NoTreeObserver(), log: { try? log.append($0) },
      forgetLog: { (user) throws(StoreError) in try log.forget(user) },
      containers: { () throws(StoreError) in try Containers(store, registry) })
  }

  /// Ends what was stopped before its end, of which a store that is opened for writing may have some.
  ///
  /// It gives what can't be ended yet, which keeps nothing else from being changed.
  @discardableResult
  package func recover(
    _ scope: RecoveryScope = .store, clearing: Bool = true
  ) throws(AppFailure) -> [AppFailure] {
    let failures = try installer().recover(scope, clearing: clearing)
    try followNumbers()
    try recoverSystem()
    return failures
  }

  /// Removes what was out of everyone's sight by then, and completes what is noted of containers.
  func clear(_ scope: RecoveryScope) throws(AppFailure) {
    let installer = try installer()
    try installer.clear(scope)
    try installer.completeNotes(scope)
  }

  /// Ends what was stopped before its end in a home outside of the store, and removes what is left of it;
  /// gives what can't be ended yet.
  func recover(inHome home: [UInt8]) throws(AppFailure) -> [AppFailure] {
    let installer = try installer()
    let failures = try installer.recover(.home(home))
    try followNumbers(inHome: String(decoding: home, as: UTF8.self))
    try installer.completeNotes(.home(home))
    return failures
  }

  /// The same in a home of the store, where nothing is removed yet.
  func recover(inHomeOfStore home: [UInt8]) throws(AppFailure) -> [AppFailure] {
    try installer().recover(.home(home), clearing: false)
  }

  /// Accounts may have got other numbers while nobody served the store.
  func followNumbers(inHome home: String? = nil) throws(AppFailure) {
    do throws(StoreError) { try store.followNumbers(in: registry, home: home) } catch { throw .store(error) }
  }

  /// Does what is asked; the reply says what came of it.
  package func reply(
    to request: AppRequest, on source: FD?, by caller: CallerIdentity, _ wait: InstallWait
  ) -> ControlReply {
    ControlReply { () throws(ControlFailure) in
      switch request {
      case .install(let name, let domain):
        return .installed(try install(try directory(source), named: name, for: domain, by: caller, wait))
      case .update(let name, let domain, let allowsDowngrade, true):
        return try updateWhenClosed(
          try directory(source), named: name, for: domain, by: caller, allowingDowngrade: allowsDowngrade,
          wait
        ).reply
      case .cancelUpdate(let identifier, let domain):
        return .waiting(try cancelUpdate(of: identifier, for: domain, by: caller))
      case .update(let name, let domain, let allowsDowngrade, false):
        let updated = try update(
          try directory(source), named: name, for: domain, by: caller, allowingDowngrade: allowsDowngrade,
          wait)
        return .updated(before: updated.before, now: updated.now, left: updated.left)
      case .uninstall(let identifier, let domain, let keepsData):
        let removed = try uninstall(identifier, of: domain, by: caller, keepingData: keepsData)
        return .uninstalled(removed.app, left: removed.left)
      case .deliver(let delivery): return .path(try deliver(delivery, by: caller))
      case .replaceData(let newData):
        try replaceData(with: newData, by: caller)
        return .done
      case .updateSystem(let name):
        return .system(try updateSystem(try directory(source), named: name, by: caller, wait))
      case .rollbackSystem: return .system(try rollbackSystem(by: caller))
      case .removed(let user): return .removed(try removed(of: user, by: caller))
      case .restoreRemoved(let number): return .removed(try restoreRemoved(number, by: caller))
      case .deleteRemoved(let number, let user):
        return .removed(try deleteRemoved(number, of: user, by: caller, isCancelled: wait.isCancelled))
      case .prepareHomeRemoval(let name, let deletesRemoved):
        try prepareRemoval(
          ofHome: name, deletingRemoved: deletesRemoved, by: caller, isCancelled: wait.isCancelled)
        return .done
      case .forgetEjectedHome(let name, let source):
        try forgetEjectedHome(name, from: source, by: caller)
        return .done
      case .forget(let former):
        try forget(former, by: caller)
        return .done
      case .assign(let team, let root):
        return .assigned(team: team, formerRoot: try assign(team, to: root, by: caller))
      case .purge(let request): return .purged(try purge(request, by: caller, isCancelled: wait.isCancelled))
      }
    }
  }

  /// What a caller may do to their own files is not always what the daemon may.
  private func directory(_ passed: FD?) throws(ControlFailure) -> FD {
    guard let passed else { throw ControlFailure.noDirectory }
    return passed
  }

  package func install(
    _ source: FD, named name: String, for domain: AppDomain, by caller: CallerIdentity, _ wait: InstallWait
  ) throws(ControlFailure) -> InstalledApp {
    let app = try explaining { () throws(AppFailure) in
      try installer(for: domain).install(source, named: name, for: domain, by: caller, wait)
    }
    log([LogEntry(.installed, app, by: caller, detail: "version \(app.version)")])
    return app
  }

  package func update(
    _ source: FD, named name: String, for domain: AppDomain, by caller: CallerIdentity,
    allowingDowngrade: Bool, _ wait: InstallWait
  ) throws(ControlFailure) -> (before: InstalledApp, now: InstalledApp, left: [LeftBehind]) {
    let updated = try explaining { () throws(AppFailure) in
      try installer(for: domain).update(
        source, named: name, for: domain, by: caller, allowingDowngrade: allowingDowngrade, wait)
    }
    note(updated.before, updated.now, by: caller)
    return updated
  }

  package func uninstall(
    _ identifier: AppIdentifier, of domain: AppDomain, by caller: CallerIdentity, keepingData: Bool
  ) throws(ControlFailure) -> (app: InstalledApp?, left: [LeftBehind]) {
    let removed = try explaining { () throws(AppFailure) in
      try installer().uninstall(identifier, of: domain, by: caller, keepingData: keepingData)
    }
    if let app = removed.app {
      log([LogEntry(.uninstalled, app, by: caller, detail: keepingData ? "its data stays" : nil)])
    }
    return removed
  }

  /// Gives where it is now, below the root of the tree.
  package func deliver(_ delivery: Delivery, by caller: CallerIdentity) throws(ControlFailure) -> String {
    try explaining { () throws(AppFailure) in
      let deliverer = Deliverer(store, registry, containers: try openContainers(), observer: observer)
      return try deliverer.deliver(delivery, by: caller)
    }
  }

  package func replaceData(with newData: NewData, by caller: CallerIdentity) throws(ControlFailure) {
    try explaining { () throws(AppFailure) in
      let replacer = DataReplacer(store, registry, containers: try openContainers(), observer: observer)
      try replacer.replace(newData, by: caller)
    }
    log([
      LogEntry(
        now: .imported, user: caller.uid, app: newData.identifier.text, path: "Users/\(newData.home)",
        detail: "its data was replaced")
    ])
  }

  func note(_ before: InstalledApp, _ now: InstalledApp, by caller: CallerIdentity) {
    let versions = "from version \(before.version) to \(now.version)"
    log([LogEntry(.updated, now, by: caller, detail: versions)])
  }

  /// Roots come and go while a daemon runs, so they are read each time.
  func installer(for domain: AppDomain = .everyone) throws(AppFailure) -> Installer {
    let trust = try StoreTrust.read(store, for: domain)
    return Installer(store, registry, containers: try openContainers(), trust: trust, observer: observer)
  }

  func openContainers() throws(AppFailure) -> Containers {
    do throws(StoreError) { return try containers() } catch { throw .store(error) }
  }

  func explaining<Result>(
    _ body: () throws(AppFailure) -> Result
  ) throws(ControlFailure) -> Result {
    do throws(AppFailure) { return try body() } catch { throw ControlFailure(error) }
  }
}

extension ControlFailure {
  static var noDirectory: ControlFailure {
    ControlFailure(
      "the request has no directory that the daemon may read; copy the bundle out of your own mount first",
      .ENOTDIR)
  }

  /// Says why nothing was done.
  package init(_ failure: AppFailure) {
    switch failure {
    case .store(let error): self.init(error)
    case .refused(_, let findings):
      self.init("\(failure)", findings.first.map { ControlFailure.Cause.finding($0.kind) } ?? .unspecified)
    default: self.init("\(failure)", failure.errno.map(ControlFailure.Cause.errno) ?? .unspecified)
    }
  }
}

extension AppFailure {
  /// What stands for it among numbers; nil where none does.
  fileprivate var errno: Errno? {
    switch self {
    case .notAllowed: .EPERM
    case .busy, .running, .runningOldVersion, .runsElsewhere: .EBUSY
    case .cancelled: .EINTR
    case .noSpace: .ENOSPC
    case .failed(_, _, let errno): errno
    default: nil
    }
  }
}

extension LogEntry {
  /// An app has come, gone or become another version.
  init(_ event: Event, _ app: InstalledApp, by caller: CallerIdentity, detail: String?) {
    self.init(
      now: event, user: app.user, app: app.identifier.text, by: caller.uid, path: app.path, detail: detail)
  }
}
