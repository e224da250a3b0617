// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import LinuxIO
internal import Policy
internal import Store

/// Does what a command wants in the store itself, which no daemon serves, by a daemon's code.
struct DirectAccess: StoreAccess {
  /// Ours alone where it is to be changed.
  let store: Store
  let context: Context

  var root: String { store.path + "/tree" }
  var storePath: String { store.path }

  // MARK: What there is

  func apps(for user: UInt32?) throws -> [AppDescription] {
    try AppQueries(store).apps(for: orOneself(user))
  }

  func app(_ identifier: AppIdentifier, for user: UInt32?) throws -> AppDescription {
    try AppQueries(store).app(identifier, for: orOneself(user))
  }

  func path(of place: AppPlace, _ identifier: AppIdentifier, for user: UInt32?) throws -> String {
    try AppQueries(store).path(of: place, identifier, for: user ?? context.uid) {
      () throws(StoreError) in
      try Containers(store, Registry(of: store))
    }
  }

  func home(of user: UInt32) throws -> String { try AppQueries(store).home(of: user) }

  func openTree(for user: UInt32?) throws -> OpenedTree {
    let metadata = Metadata(isSystem: store.description.mode == .system)
    return OpenedTree(directory: try store.tree.duplicated(), access: .store(metadata))
  }

  func openedStore() -> Store { store }

  func systemVersions() throws -> SystemVersions { try SystemVersions(of: store) }

  func trust() throws -> Trust { try StoreTrust.read(store) }

  func documents(for user: UInt32?) throws -> DocumentsPage {
    let registry = try Registry.existing(of: store)
    return try DocumentsPage.all { after in
      try DocumentsPage(registry, for: user ?? context.uid, after: after)
    }
  }

  // MARK: Changes

  func choose(_ identifier: AppIdentifier?, for type: String) throws {
    let registry = try Registry(of: store)
    let app = try identifier.map { identifier in
      guard let app = try registry.app(identifier, for: context.uid) else {
        throw StoreError.noApp(identifier: identifier.text)
      }
      return app
    }
    try registry.choose(app, for: type, of: context.uid)
  }

  func install(_ bundle: FD, named name: String, for domain: AppDomain) throws -> InstalledApp {
    try changing { (handler, wait) throws(ControlFailure) in
      try handler.install(bundle, named: name, for: domain, by: .ourselves, wait)
    }
  }

  func update(
    _ bundle: FD, named name: String, for domain: AppDomain, allowingDowngrade: Bool
  ) throws -> (before: InstalledApp, now: InstalledApp, left: [LeftBehind]) {
    try changing { (handler, wait) throws(ControlFailure) in
      try handler.update(
        bundle, named: name, for: domain, by: .ourselves, allowingDowngrade: allowingDowngrade, wait)
    }
  }

  func updateWhenClosed(
    _ bundle: FD, named name: String, for domain: AppDomain, allowingDowngrade: Bool
  ) throws -> UpdateOutcome {
    try changing { (handler, wait) throws(ControlFailure) in
      try handler.updateWhenClosed(
        bundle, named: name, for: domain, by: .ourselves, allowingDowngrade: allowingDowngrade, wait)
    }
  }

  func cancelUpdate(of identifier: AppIdentifier, for domain: AppDomain) throws -> WaitingUpdate {
    try changing(placingUpdates: false) { (handler, _) throws(ControlFailure) in
      try handler.cancelUpdate(of: identifier, for: domain, by: .ourselves)
    }
  }

  func uninstall(
    _ identifier: AppIdentifier, of domain: AppDomain, keepingData: Bool
  ) throws -> (app: InstalledApp?, left: [LeftBehind]) {
    try changing(placingUpdates: false) { (handler, _) throws(ControlFailure) in
      try handler.uninstall(identifier, of: domain, by: .ourselves, keepingData: keepingData)
    }
  }

  func deliver(_ delivery: Delivery) throws -> String {
    try changing { (handler, _) throws(ControlFailure) in try handler.deliver(delivery, by: .ourselves) }
  }

  func replaceData(with newData: NewData) throws {
    try changing { (handler, _) throws(ControlFailure) in
      try handler.replaceData(with: newData, by: .ourselves)
    }
  }

  func purge(_ request: PurgeRequest) throws -> PurgeReport {
    try changing { (handler, wait) throws(ControlFailure) in
      try handler.purge(request, by: .ourselves, isCancelled: wait.isCancelled)
    }
  }

  func removed(of user: UInt32?) throws -> RemovedReport {
    try changing(placingUpdates: false) { (handler, _) throws(ControlFailure) in
      try handler.removed(of: orOneself(user), by: .ourselves)
    }
  }

  func restoreRemoved(_ number: Int64) throws -> RemovedReport {
    try changing(placingUpdates: false) { (handler, _) throws(ControlFailure) in
      try handler.restoreRemoved(number, by: .ourselves)
    }
  }

  func deleteRemoved(_ number: Int64?, of user: UInt32?) throws -> RemovedReport {
    try changing(placingUpdates: false) { (handler, wait) throws(ControlFailure) in
      try handler.deleteRemoved(number, of: orOneself(user), by: .ourselves, isCancelled: wait.isCancelled)
    }
  }

  func forget(_ former: FormerUser) throws -> [LeftBehind]? {
    // Without a registry nobody has decided anything.
    guard try former.removedHome != nil || Registry.existing(of: store) != nil else { return nil }
    let forgotten = try changing(placingUpdates: false) { (handler, _) throws(ControlFailure) in
      try handler.forget(former, by: .ourselves)
    }
    if forgotten.parts.contains(.trash) { try store.removeLeft() }
    return forgotten.parts.contains(.decisions) && former.successor != nil ? forgotten.aside : nil
  }

  func prepareRemoval(ofHome name: String, deletingRemoved: Bool) throws {
    try changing(placingUpdates: false) { (handler, wait) throws(ControlFailure) in
      try handler.prepareRemoval(
        ofHome: name, deletingRemoved: deletingRemoved, by: .ourselves, isCancelled: wait.isCancelled)
    }
  }

  func forgetEjectedHome(_ name: String, from source: String?) throws {
    try changing(placingUpdates: false) { (handler, _) throws(ControlFailure) in
      try handler.forgetEjectedHome(name, from: source, by: .ourselves)
    }
  }

  func assign(team: String, to root: [UInt8]) throws -> [UInt8]? {
    try changing(placingUpdates: false) { (handler, _) throws(ControlFailure) in
      try handler.assign(team, to: root, by: .ourselves)
    }
  }

  func updateSystem(_ tree: FD, named name: String) throws -> SystemVersions {
    try changing { (handler, wait) throws(ControlFailure) in
      try handler.updateSystem(tree, named: name, by: .ourselves, wait)
    }
  }

  func rollbackSystem() throws -> SystemVersions {
    try changing { (handler, _) throws(ControlFailure) in try handler.rollbackSystem(by: .ourselves) }
  }

  /// Nothing runs from a store that nobody serves: what waits for that is done first.
  private func changing<Result>(
    placingUpdates: Bool = true,
    _ body: (AppRequestHandler, InstallWait) throws(ControlFailure) -> Result
  ) throws -> Result {
    try showingProgress { note in
      let handler = AppRequestHandler(store, try Registry(of: store))
      try handler.recover()
      if placingUpdates {
        for outcome in try handler.placeWaiting() { outcome.tell(in: root, context.console) }
      }
      return try explaining { () throws(ControlFailure) in try body(handler, InstallWait(progress: note)) }
    }
  }

  private func explaining<Result>(_ body: () throws(ControlFailure) -> Result) throws(CommandFailure)
    -> Result
  {
    do throws(ControlFailure) { return try body() } catch { throw CommandFailure(error) }
  }

  // MARK: Grants

  func perform(_ request: GrantRequest) throws -> [GrantedPlace] {
    let service = try GrantService(unmounted: store, isReadOnly: false)
    defer { service.finish() }
    return try explaining { () throws(ControlFailure) in try service.perform(request, by: .ourselves) }
  }

  func grants(_ identifier: AppIdentifier?, of user: UInt32?) throws -> [GrantedPlace] {
    let service = try GrantService(unmounted: store, isReadOnly: true)
    return GrantPage.all { after in service.list(identifier, of: orOneself(user), after: after) }
  }

  // MARK: Consent

  func consents(_ request: ConsentRequest) throws -> [ConsentStatus] {
    throw CommandFailure(
      .notMounted,
      "the store \(store.path) is not mounted; mount it to see or change consent: "
        + "'insula mount \(store.path)'")
  }

  // MARK: What was refused and done

  func log(_ query: LogQuery) -> LogPage { StoreLog(store).page(query) }

  func storage(_ request: StorageRequest) throws -> StorageReport {
    let now = context.now()
    return try StorageMeter(store, Registry.existing(of: store), now: now).report(
      request, by: .ourselves, rule: .usual
    ) { (place) throws(Errno) in
      MeasuredUsage(try place.measure(in: store) {}, time: now)
    }
  }

  // MARK: Apps that run

  func running(for user: UInt32?) -> [RunningApp] { [] }

  func end(_ identifier: AppIdentifier, of user: UInt32?, with signal: Int32?) throws {
    throw CommandFailure(.failed, "\(identifier) is not running: its store is not mounted")
  }

  func runner() throws -> RunningDaemon {
    throw CommandFailure(
      .notMounted,
      "the store \(store.path) is not mounted; mount it first: 'insula mount \(store.path)'")
  }
}

extension SystemVersions {
  /// As the registry has them.
  init(of store: Store) throws {
    self = try Registry.existing(of: store)?.systemVersions() ?? SystemVersions(current: .none)
  }
}
