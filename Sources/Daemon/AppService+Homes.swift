// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

// What is to be done in homes without a command of their owners: outside of the store on the thread of each
// (``HomeWork``), since its disk or server may not answer, and in the store on the thread of its owner
// (``UserWork``), who may hold up whoever looks there.

extension AppService {
  /// Ends what was stopped before its end in a home that has just appeared.
  func recover(inHome home: [UInt8]) {
    guard let elsewhere = store.homeElsewhere(named: home) else { return }
    HomeWork.ofProcess.begin(in: elsewhere, as: "recover") { [self] in
      services?.grants.reconcile()
      handling(home) { (handler) throws(AppFailure) in try handler.recover(inHome: home) }
    }
  }

  private func handling(
    _ home: [UInt8], _ body: (AppRequestHandler) throws(AppFailure) -> [AppFailure]
  ) {
    guard !isReadOnly, let tree = tree.withLock({ $0 }) else { return }
    do {
      guard let registry = try knownRegistry() else { return }
      for failure in try body(handler(registry, tree)) {
        DaemonLog.write("can't complete a change of an app that was interrupted: \(failure)")
      }
    } catch {
      let name = String(decoding: home, as: UTF8.self).sanitized
      DaemonLog.write("can't remove what was left in the home of \(name): \(error)")
    }
  }

  /// The same in all homes that are there.
  ///
  /// What is to be ended in those of the store is waited for, for a moment: then apps start as if nothing had
  /// been interrupted.
  func recoverHomes() {
    for home in homesElsewhere() { recover(inHome: home) }
    guard !isReadOnly, let registry = try? knownRegistry(), let users = try? homesOfStore(registry) else {
      return
    }
    let intents = (try? registry.intents()) ?? []
    let interrupted = Set(intents.compactMap { RecoveryScope.home(in: $0.intent.app.path.utf8) })
    let begun = UserWork.ofProcess.begin(for: users.keys, as: "recover") { [self] user in
      let homes = users[user] ?? []
      for home in homes {
        handling(home) { (handler) throws(AppFailure) in try handler.recover(inHomeOfStore: home) }
      }
      // Not here: other users' homes are waited for.
      if !interrupted.isDisjoint(with: homes) { noteLater() }
    }
    _ = begun.wait(milliseconds: HomeWork.patienceMilliseconds)
    _ = UserWork.ofProcess.begin(for: users.keys, as: "clear") { [self] user in
      for home in users[user] ?? [] {
        handling(home) { (handler) throws(AppFailure) in
          try handler.clear(.home(home))
          return []
        }
      }
    }
  }

  /// The homes in the store of which the registry knows something, by their owners.
  private func homesOfStore(_ registry: Registry) throws(StoreError) -> [UInt32: [[UInt8]]] {
    let outside = try registry.namesOfHomesElsewhere()
    let paths =
      try registry.bundles().map(\.path) + registry.containers().map(\.path)
      + registry.removedContainers().map(\.container.path)
    var users: [UInt32: [[UInt8]]] = [:]
    for home in Set(paths.compactMap { RecoveryScope.home(in: $0.utf8) }) where !outside.contains(home) {
      let owner = try store.owner(ofHomeIn: Self.path(home), registry)
      users[owner ?? 0, default: []].append(home)
    }
    return users
  }

  /// Finishes purges in homes outside of the store, and deletes removed containers whose time is over: in one
  /// after the other, each of which is waited for only for a moment.
  func finishInHomes(_ limit: RemovedLimit, _ isCancelled: @escaping @Sendable () -> Bool) {
    inHomes(homesElsewhere(), as: "finish", isCancelled) { [self] home in
      _ = finishPurges(inHome: home, isCancelled)
      _ = deleteOldRemoved(limit, .home(home), isCancelled)
    }
  }

  /// Does something in each home that lies on another disk than the store, as above.
  func inHomesOnOtherDisks(
    as name: String, _ isCancelled: @escaping @Sendable () -> Bool,
    _ work: @escaping @Sendable (_ home: [UInt8]) -> Void
  ) {
    let others = homesOnOtherDisks()
    inHomes(homesElsewhere().filter(others.contains), as: name, isCancelled, work)
  }

  private func inHomes(
    _ homes: [[UInt8]], as name: String, _ isCancelled: @escaping @Sendable () -> Bool,
    _ work: @escaping @Sendable (_ home: [UInt8]) -> Void
  ) {
    guard !isReadOnly else { return }
    for home in homes where !isCancelled() {
      guard let elsewhere = store.homeElsewhere(named: home) else { continue }
      let result = HomeWork.ofProcess.begin(in: elsewhere, as: name, changingApps: false) {
        Pace.giveWay()
        work(home)
      }
      let end = monotonicNanoseconds() &+ UInt64(HomeWork.patienceMilliseconds) * 1_000_000
      _ = result?.value(until: end)
    }
  }

  /// Has what this process knows of apps and containers follow what has ended in a home.
  ///
  /// On another thread: homes are waited for there, for a moment.
  func noteLater() {
    guard !isNotingLater.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let note = { @Sendable [self] in
      isNotingLater.store(false, ordering: .releasing)
      reconcileTrust()
      noteContainers()
    }
    if let thread = try? JoinableThread(name: "noting", note) { thread.detach() } else { note() }
  }

  /// What tells of a path whether it leads to something on the store's own disk.
  func reachOfStore() -> (_ path: String) -> Bool {
    let others = homesOnOtherDisks()
    return { RecoveryScope.store.reaches($0.utf8, outside: others) }
  }

  private func homesOnOtherDisks() -> Set<[UInt8]> {
    let names = (try? knownRegistry()?.namesOfHomesElsewhere()) ?? []
    let own = (try? store.tree.statusInMemory())?.st_dev
    return names.filter { home in
      let target = store.homeElsewhere(named: home)?.target
      return (try? target?.root.use { (root) throws(Errno) in try root.statusInMemory().st_dev }) != own
    }
  }

  private func homesElsewhere() -> [[UInt8]] {
    let names = (try? knownRegistry()?.namesOfHomesElsewhere()) ?? []
    return names.filter { store.homeElsewhere(named: $0) != nil }
  }

  static func path(_ home: [UInt8]) -> String { "Users/\(String(decoding: home, as: UTF8.self))/" }
}
