// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Store
internal import Synchronization

/// What a daemon does to apps while it serves their store.
final class AppService: Sendable {
  private let store: Store
  private let log: EventLog
  let isReadOnly: Bool
  /// Made with the first request that needs it: a full disk is no reason not to mount a store.
  private let registry: Mutex<Registry?>
  /// Set once it is mounted.
  private let tree = Mutex<MountedTree?>(nil)
  private let grants = Mutex<GrantService?>(nil)
  /// One after the other, so that the last one notes what there is in the end.
  private let noting = Mutex(())

  /// Before the tree is mounted: what an earlier daemon was stopped in is ended or taken back.
  init(_ store: Store, _ settings: Service.Settings, _ log: EventLog) throws {
    self.store = store
    self.log = log
    isReadOnly = settings.options.readOnly
    let registry = try Registry.existing(of: store)
    if let registry, !isReadOnly { try Self.recover(store, registry) }
    self.registry = Mutex(registry)
  }

  /// What can't be ended now, for want of room for example, is ended before the next change: until then its
  /// paths are read-only (``Registry/bundles()``), and that is no reason to serve nobody.
  private static func recover(_ store: Store, _ registry: Registry) throws(AppFailure) {
    var failures: [AppFailure]
    do throws(AppFailure) {
      failures = try AppRequestHandler(store, registry).recover()
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

  /// The registry, which is made if there is none.
  func openRegistry() throws(StoreError) -> Registry {
    try registry.withLock { (known) throws(StoreError) in
      if let known { return known }
      let made = try Registry(of: store)
      known = made
      return made
    }
  }

  /// The registry if the store has one by now, be it by a command's doing.
  func knownRegistry() throws(StoreError) -> Registry? {
    try registry.withLock { (known) throws(StoreError) in
      if known == nil { known = try Registry.existing(of: store) }
      return known
    }
  }

  /// From here on, changes reach those who look at the tree, and what was granted to apps that go is taken
  /// back.
  func serve(_ tree: MountedTree, _ grants: GrantService) {
    self.tree.withLock { $0 = tree }
    self.grants.withLock { $0 = grants }
  }

  /// The containers of the store, through which questions about them go too.
  func containers() throws(StoreError) -> Containers {
    let registry = try openRegistry()
    guard let tree = tree.withLock({ $0 }) else { return try Containers(store, registry) }
    return try tree.containers(registry)
  }

  /// Apps or containers may have changed: the volume learns which apps may have names with a dot.
  func noteContainers() {
    guard let tree = tree.withLock({ $0 }) else { return }
    do throws(StoreError) {
      guard let registry = try knownRegistry() else { return }
      try noting.withLock { (_) throws(StoreError) in try tree.noteContainers(registry) }
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
    let grants = grants.withLock { $0 }
    return .job(.changes) { [self] reporter in
      let caller = call.callerIdentity()
      defer {
        noteContainers()
        grants?.reconcile()
      }
      let registry: Registry
      do throws(StoreError) { registry = try openRegistry() } catch { return .failure(ControlFailure(error)) }
      let handler = AppRequestHandler(store, registry, observer: tree, log: { [log] in log.record($0) }) {
        () throws(StoreError) in
        try tree.containers(registry)
      }
      let wait = InstallWait(progress: { reporter.report($0) }, isCancelled: { reporter.isCancelled })
      guard let bundle = call.descriptor else {
        return handler.reply(to: request, on: nil, by: caller, wait)
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
}
