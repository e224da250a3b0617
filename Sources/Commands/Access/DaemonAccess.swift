// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Asks the daemon that serves a store.
struct DaemonAccess: StoreAccess {
  private let client: ControlClient
  private let status: DaemonStatus
  let context: Context

  init(_ daemon: DaemonSearch.Found, _ context: Context) {
    (client, status) = (daemon.client, daemon.status)
    self.context = context
  }

  var root: String { status.mountPoint }
  var storePath: String { status.store }

  // MARK: What there is

  func apps(for user: UInt32?) throws -> [AppDescription] {
    var apps: [AppDescription] = []
    while true {
      let part = try ask(.apps(user: orOneself(user), after: apps.count)) { $0.apps }
      // Daemons of earlier versions have told everything at once.
      guard let first = part.first, first != apps.first else { return apps }
      apps += part
    }
  }

  func app(_ identifier: AppIdentifier, for user: UInt32?) throws -> AppDescription {
    try ask(.app(identifier, user: orOneself(user)), about: identifier) { $0.apps?.first }
  }

  func path(of place: AppPlace, _ identifier: AppIdentifier, for user: UInt32?) throws -> String {
    try ask(.path(of: place, identifier, user: user), about: identifier) { $0.path }
  }

  /// As the mount shows it.
  func home(of user: UInt32) throws -> String {
    let users = root + "/Users"
    let directory = try FD.cwd.open(users, O_RDONLY | O_DIRECTORY)
    guard let home = try MountedHome.name(of: user, in: directory.fd) else {
      let account = Account.numbered(user)?.name
      let path = "\(users)/\(account ?? "of uid \(user)")"
      do throws(Errno) { _ = try directory.fd.status(of: account ?? "") } catch .ENOMEDIUM {
        throw StoreError.homeIsAway(path: path)
      } catch {}
      throw StoreError.noHome(path: path)
    }
    return "Users/\(home)"
  }

  func openTree(for user: UInt32?) throws -> OpenedTree {
    guard user == nil || user == context.uid else {
      throw CommandFailure(
        .busy,
        "the store \(status.store) is mounted at \(status.mountPoint), "
          + "which is not visible from here; run this command where it is, "
          + "or unmount the store first")
    }
    return OpenedTree(directory: try context.openDirectory(root), access: .mount)
  }

  /// Another one may lie at that path by now.
  func openedStore() throws -> Store {
    let store = try Store(opening: status.store, .inspect)
    if let identity = status.identity, store.identity != identity {
      throw StoreError.notThere(path: status.store)
    }
    return store
  }

  func systemVersions() throws -> SystemVersions {
    do {
      return try SystemVersions(of: openedStore())
    } catch let error as StoreError where error.kind == .notPermitted {
      return try SystemVersions(shownIn: context.openDirectory(root + "/System"))
    }
  }

  func trust() throws -> Trust {
    let roots = try ask(.roots) { if case .roots(let roots) = $0 { roots } else { nil } }
    return Trust(roots: roots.isEmpty ? [] : try Certificate.all(inPEM: Array(roots.utf8)))
  }

  func documents(for user: UInt32?) throws -> DocumentsPage {
    try DocumentsPage.all { after in
      try ask(.documents(user: user ?? context.uid, after: after)) {
        if case .documents(let page) = $0 { page } else { nil }
      }
    }
  }

  // MARK: Changes

  func install(_ bundle: FD, named name: String, for domain: AppDomain) throws -> InstalledApp {
    try change(.install(named: name, for: domain), bundle) {
      if case .installed(let app) = $0 { app } else { nil }
    }
  }

  func update(
    _ bundle: FD, named name: String, for domain: AppDomain, allowingDowngrade: Bool
  ) throws -> (before: InstalledApp, now: InstalledApp, left: [LeftBehind]) {
    let request = AppRequest.update(
      named: name, for: domain, allowsDowngrade: allowingDowngrade, whenClosed: false)
    return try change(request, bundle) {
      if case .updated(let before, let now, let left) = $0 { (before, now, left) } else { nil }
    }
  }

  func updateWhenClosed(
    _ bundle: FD, named name: String, for domain: AppDomain, allowingDowngrade: Bool
  ) throws -> UpdateOutcome {
    let request = AppRequest.update(
      named: name, for: domain, allowsDowngrade: allowingDowngrade, whenClosed: true)
    return try change(request, bundle) {
      switch $0 {
      case .updated(let before, let now, let left): .updated(before: before, now: now, left: left)
      case .waiting(let update): .waits(update)
      default: nil
      }
    }
  }

  func cancelUpdate(of identifier: AppIdentifier, for domain: AppDomain) throws -> WaitingUpdate {
    try change(.cancelUpdate(identifier, of: domain)) {
      if case .waiting(let update) = $0 { update } else { nil }
    }
  }

  func uninstall(
    _ identifier: AppIdentifier, of domain: AppDomain, keepingData: Bool
  ) throws -> (app: InstalledApp?, left: [LeftBehind]) {
    try change(.uninstall(identifier, of: domain, keepsData: keepingData)) {
      if case .uninstalled(let app, let left) = $0 { (app, left) } else { nil }
    }
  }

  func choose(_ identifier: AppIdentifier?, for type: String) throws {
    try ask(.choose(identifier, type: type, user: context.uid), about: identifier) { $0 == .done ? () : nil }
  }

  func deliver(_ delivery: Delivery) throws -> String { try change(.deliver(delivery)) { $0.path } }

  func replaceData(with newData: NewData) throws {
    try change(.replaceData(newData)) { $0 == .done ? () : nil }
  }

  func purge(_ request: PurgeRequest) throws -> PurgeReport {
    try change(.purge(request)) { if case .purged(let report) = $0 { report } else { nil } }
  }

  func removed(of user: UInt32?) throws -> RemovedReport { try change(.removed(of: user)) { $0.removed } }

  func restoreRemoved(_ number: Int64) throws -> RemovedReport {
    try change(.restoreRemoved(number)) { $0.removed }
  }

  func deleteRemoved(_ number: Int64?, of user: UInt32?) throws -> RemovedReport {
    try change(.deleteRemoved(number, of: user)) { $0.removed }
  }

  func forget(_ former: FormerUser) throws -> [LeftBehind]? {
    try change(.forget(former)) { reply -> [LeftBehind]?? in
      reply == .done ? .some(nil) : reply.removed.map { $0.left }
    }
  }

  func prepareRemoval(ofHome name: String, deletingRemoved: Bool) throws {
    try change(.prepareHomeRemoval(name, deletesRemoved: deletingRemoved)) { $0 == .done ? () : nil }
  }

  func forgetEjectedHome(_ name: String, from source: String?) throws {
    try change(.forgetEjectedHome(name, from: source)) { $0 == .done ? () : nil }
  }

  func assign(team: String, to root: [UInt8]) throws -> [UInt8]? {
    try change(.assign(team: team, root: root)) {
      if case .assigned(_, let former) = $0 { .some(former) } else { nil }
    }
  }

  func updateSystem(_ tree: FD, named name: String) throws -> SystemVersions {
    try change(.updateSystem(named: name), tree) { $0.system }
  }

  func rollbackSystem() throws -> SystemVersions { try change(.rollbackSystem) { $0.system } }

  // MARK: Grants

  func perform(_ request: GrantRequest) throws -> [GrantedPlace] {
    let reply: ControlReply
    do throws(Errno) {
      reply = try client.ask(.grant(request), with: nil)
    } catch {
      throw CommandFailure(
        .failed,
        "lost the connection to the daemon of \(status.store) (\(error.message)); "
          + "'insula grants' shows the grants that are in effect now; make the request again if need be")
    }
    return try reply.orFailure { $0.grants }.places
  }

  func grants(_ identifier: AppIdentifier?, of user: UInt32?) throws -> [GrantedPlace] {
    try GrantPage.all { after in
      try ask(.grants(identifier, user: orOneself(user), after: after)) { $0.grants }
    }
  }

  // MARK: Consent

  func consents(_ request: ConsentRequest) throws -> [ConsentStatus] {
    if case .list(let app, let user, _) = request {
      return try ConsentRequest.all { after in
        try ask(.consent(.list(app: app, user: user, after: after))) { $0.consents }
      }
    }
    let reply: ControlReply
    do throws(Errno) {
      reply = try client.ask(.consent(request), with: nil)
    } catch {
      throw CommandFailure(
        .failed,
        "lost the connection to the daemon of \(status.store) (\(error.message)); "
          + "'insula consent list' shows what holds now; make the request again if need be")
    }
    return try reply.orFailure { $0.consents }
  }

  // MARK: What was refused and done

  func log(_ query: LogQuery) throws -> LogPage { try ask(.log(query)) { $0.log } }

  /// Where nothing is known yet, all of it is looked at first, for as long as that takes.
  func storage(_ request: StorageRequest) throws -> StorageReport {
    let reply: ControlReply
    do throws(Errno) {
      reply = try client.askInTurn(.storage(request), milliseconds: -1).reply
    } catch {
      throw CommandFailure(
        .failed, "the daemon of \(status.store), pid \(status.pid), does not answer: \(error.message)")
    }
    return try reply.orFailure { if case .storage(let report) = $0 { report } else { nil } }
  }

  // MARK: Apps that run

  func running(for user: UInt32?) throws -> [RunningApp] { try ask(.running(user: user)) { $0.running } }

  func end(_ identifier: AppIdentifier, of user: UInt32?, with signal: Int32?) throws {
    _ = try ask(.end(identifier, user: user, signal: signal)) { $0.running }
  }

  func runner() -> RunningDaemon { RunningDaemon(client, status) }
}

extension DaemonAccess {
  // MARK: The conversation

  /// Asks what is answered at once.
  private func ask<Answer>(
    _ request: ControlRequest, about identifier: AppIdentifier? = nil, _ answer: (ControlReply) -> Answer?
  ) throws -> Answer {
    let reply: ControlReply
    do throws(Errno) {
      reply = try client.askInTurn(request, milliseconds: 30_000).reply
    } catch {
      throw CommandFailure(
        .failed, "the daemon of \(status.store), pid \(status.pid), does not answer: \(error.message)")
    }
    if case .failure(let failure) = reply, failure.cause == .store(.noApp), let identifier {
      throw StoreError.noApp(identifier: identifier.text)
    }
    return try reply.orFailure(answer)
  }

  /// Has something changed; `source` is the directory that goes with the request.
  ///
  /// On a connection of its own: until it comes to that, a command may have been silent for long, and the
  /// daemon have hung up.
  private func change<Answer>(
    _ request: AppRequest, _ source: FD? = nil, _ answer: (ControlReply) -> Answer?
  ) throws -> Answer {
    guard let source, request.isOfBundle, serves(source) else { return try order(request, source, answer) }
    return try context.withCopy(of: source) { try order(request, $0, answer) }
  }

  /// Whether something lies in the mount: the daemon reads nothing there, where it would wait for itself.
  private func serves(_ source: FD) -> Bool {
    guard let device = try? source.deviceInMemory(), let root = try? context.openDirectory(root) else {
      return false
    }
    return (try? root.fd.deviceInMemory()) == device
  }

  private func order<Answer>(
    _ request: AppRequest, _ source: FD?, _ answer: (ControlReply) -> Answer?
  ) throws -> Answer {
    let reply = try showingProgress { note in
      do throws(Errno) {
        return try client.again().ask(.change(request), with: source, progress: note)
      } catch {
        throw CommandFailure(
          .failed,
          "lost the connection to the daemon of \(status.store) (\(error.message)); "
            + "what it was doing is completed or undone by the daemon that replaces it, or by the next "
            + "mount; look at what there is now, and make the request again if it was undone")
      }
    }
    return try reply.orFailure(answer)
  }
}

extension AppRequest {
  /// Whether a bundle comes along.
  fileprivate var isOfBundle: Bool {
    switch self {
    case .install, .update: true
    default: false
    }
  }
}

extension ControlReply {
  fileprivate var apps: [AppDescription]? { if case .apps(let apps) = self { apps } else { nil } }
  fileprivate var path: String? { if case .path(let path) = self { path } else { nil } }
  fileprivate var grants: GrantPage? { if case .grants(let page) = self { page } else { nil } }
  var consents: [ConsentStatus]? { if case .consents(let states) = self { states } else { nil } }
  fileprivate var log: LogPage? { if case .log(let page) = self { page } else { nil } }
  fileprivate var running: [RunningApp]? { if case .running(let apps) = self { apps } else { nil } }
  fileprivate var system: SystemVersions? { if case .system(let versions) = self { versions } else { nil } }

  /// What the reply must be; one that says why something failed is thrown.
  func orFailure<Answer>(_ answer: (ControlReply) -> Answer?) throws -> Answer {
    if case .failure(let failure) = self { throw CommandFailure(failure) }
    guard let answer = answer(self) else {
      throw CommandFailure(.failed, "the daemon sent a reply that this command can't understand")
    }
    return answer
  }
}

extension SystemVersions {
  /// As the tree of the system domain says it.
  fileprivate init(shownIn tree: borrowing OwnedFD) throws {
    let found = Result { () throws(SystemSignature.Failure) in try SystemSignature(in: tree.fd) }
    if case .failure(.unsigned) = found {
      self.init(current: .none)
      return
    }
    let signature = try found.get()
    self.init(
      current: SystemVersion(
        root: signature.rootHash, version: signature.seal.version, team: signature.seal.team, installed: 0))
  }
}

extension ControlReply {
  fileprivate var removed: RemovedReport? { if case .removed(let report) = self { report } else { nil } }
}
