// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
package import Policy
internal import Store

extension Installer {
  /// Ends what a process of ours was stopped in: forward where the change was visible already, back where
  /// not.
  ///
  /// Whoever opens the store for writing calls it before anything else is done to apps; what this process is
  /// at is left alone. It gives what can't be ended: that keeps nobody from changing other apps, since it may
  /// be a user who has put something in the way.
  ///
  /// Without `clearing`, what it has taken out of everyone's sight is left to ``clear(_:)``: a daemon that
  /// takes over lets nobody wait for that.
  @discardableResult
  package func recover(
    _ scope: RecoveryScope = .store, clearing: Bool = true
  ) throws(AppFailure) -> [AppFailure] {
    awaitFormerWorkers(scope)
    var failures: [AppFailure] = []
    try registered { () throws(StoreError) in try Homes.endAdoptions(in: store, registry) }
    let outside = try registered { () throws(StoreError) in try registry.namesOfHomesElsewhere() }
    for noted in try registered({ () throws(StoreError) in try registry.intents() })
    where !noted.isLive && scope.reaches(noted.intent.app.path.utf8, outside: outside) {
      do throws(AppFailure) {
        try endInTurn(noted)
      } catch {
        if case .store = error { throw error }
        failures.append(error)
      }
    }
    forgetUnknownUpdates(scope)
    try noteRoots(scope, outside)
    noteDeclarations(scope)
    if clearing { try clear(scope) }
    return failures
  }

  /// The same before a command changes apps in a domain: nobody waits for the homes of others, and tries
  /// again what could not be removed for others.
  func recover(_ domain: AppDomain, by caller: CallerIdentity) throws(AppFailure) {
    try recover(.command(of: caller.uid, about: RecoveryScope.home(in: domain.path.utf8)))
  }

  /// Removes what processes have left that were stopped, which takes as long as there is much of it.
  package func clear(_ scope: RecoveryScope = .store) throws(AppFailure) {
    try registered { () throws(StoreError) in
      try store.removeLeft()
      try StagedTree.clear(store)
      try containers.endStoppedReplacements(scope)
    }
    // What was removed may have had containers that are still there.
    _ = try? containers.clearWorkshop()
    _ = try? removeMarked(scope) { _ in true }
  }

  /// Does what a look at all containers takes, once when a daemon starts or when their home appears: notes
  /// their teams on those of an earlier version, and ends restorations that were stopped.
  package func completeNotes(_ scope: RecoveryScope = .store) throws(AppFailure) {
    try registered { () throws(StoreError) in
      try containers.forgetRestored(scope)
      try containers.noteTeams(scope)
    }
  }

  /// What a worker has begun that was killed, and that waits for the disk of a home, is done when that
  /// answers: only then it shows what it has come to.
  private func awaitFormerWorkers(_ scope: RecoveryScope) {
    let name: [UInt8]?
    switch scope {
    case .store, .machine: name = nil
    case .home(let home): name = home
    case .command(_, let home): name = home
    }
    guard let name, let home = store.homeElsewhere(named: name)?.target else { return }
    FormerWorkers.awaitEnd(onDevice: home.number.device)
  }

  /// One thread at a time ends a change: of what another one has ended, the paths may be somebody else's by
  /// now.
  private func endInTurn(_ noted: NotedIntent) throws(AppFailure) {
    try Self.endings.with("\(noted.number) \(store.path)") { () throws(AppFailure) in
      guard try registered({ () throws(StoreError) in try registry.claim(noted) }) else { return }
      defer { registry.leave(noted) }
      try endInPlace(noted)
    }
  }

  private static let endings = KeyedTurns<String>()

  private func endInPlace(_ noted: NotedIntent) throws(AppFailure) {
    let path = BundlePlace(path: noted.intent.app.path).parent
    let directory: OwnedFD
    do throws(Errno) {
      directory = try store.tree.openDirectory(at: path)
    } catch .ENOENT, .ENOTDIR, .ELOOP {
      if try isAway(path) {
        throw .failed(doing: "open", path: "\(treePath)/\(path)", errno: .ENOMEDIUM)
      }
      // It is gone, and its bundle with it, whatever has its place now.
      return try end(noted, nil)
    } catch {
      throw .failed(doing: "open", path: "\(treePath)/\(path)", errno: error)
    }
    // What is not there may be in another home of that name, which was ejected.
    if !directory.fd.has(BundlePlace(path: noted.intent.app.path).name), try hasEjectedHome(path) {
      throw .failed(doing: "open", path: "\(treePath)/\(path)", errno: .ENOMEDIUM)
    }
    try end(noted, directory.fd)
  }

  /// Whether a path leads into a home that is not there now and may come back.
  private func isAway(_ path: String) throws(AppFailure) -> Bool {
    if store.homeElsewhere(of: path) != nil { return true }
    return try hasEjectedHome(path)
  }

  /// Ends what may have been done or not: by what there is in the tree now.
  func end(_ noted: NotedIntent, _ directory: FD?) throws(AppFailure) {
    let intent = noted.intent
    let place = BundlePlace(path: intent.app.path)
    let seal = directory.flatMap { Self.seal(of: place.name, in: $0) }
    switch intent.work {
    case .install, .update:
      guard seal == intent.app.seal else {
        return try abandon(noted)
      }
      if let before = intent.before, !before.path.hasSameBytes(as: intent.app.path), let directory {
        let old = try registered { () throws(StoreError) in
          try StagedTree(forTakingIn: store, from: before.path)
        }
        do throws(Errno) {
          try take(BundlePlace(path: before.path), seal: before.seal, from: directory, to: old)
        } catch {
          throw .failed(doing: "remove", path: "\(treePath)/\(before.path)", errno: error)
        }
      }
    case .uninstall:
      if let directory, directory.has(place.name) {
        return try abandon(noted)
      }
    }
    settle(intent, isDone: true)
    try commit(noted, directory)
    // As whoever was stopped would have done next; what stands in the way there keeps no app from changes.
    _ = try? completeContainers(of: intent.app, before: intent.before)
  }

  private func abandon(_ noted: NotedIntent) throws(AppFailure) {
    settle(noted.intent, isDone: false)
    try registered { () throws(StoreError) in try registry.abandon(noted) }
  }

  /// As long as a change was interrupted, what it was about counted as either.
  ///
  /// Before the intent is taken off: from then on somebody else's app may get the path.
  private func settle(_ intent: TreeIntent, isDone: Bool) {
    let (old, new): (InstalledApp?, InstalledApp?) =
      intent.work == .uninstall ? (intent.app, nil) : (intent.before, intent.app)
    let there = isDone ? new : old
    for path in Set([old, new].compactMap { $0.map { ExactText($0.path) } }) {
      observer.settled(path.text, seal: there.flatMap { ExactText($0.path) == path ? $0.seal : nil })
    }
  }

  /// Finds out under which roots the apps were signed that an earlier version has installed, the first
  /// installed first.
  ///
  /// Of one whose root is trusted no more that stays unknown, and nobody is of its team until someone says
  /// who is.
  private func noteRoots(_ scope: RecoveryScope, _ outside: Set<[UInt8]>) throws(AppFailure) {
    let unknown = try registered { () throws(StoreError) in try registry.apps() }.filter {
      $0.root == nil && scope.reaches($0.path.utf8, outside: outside)
    }
    for app in unknown.inOrder(by: { $0.installed < $1.installed }) {
      guard let root = try? store.tree.openDirectory(at: app.path),
        let bundle = try? CodeBundle(in: root, name: app.bundleName), (try? bundle.sealDigest()) == app.seal
      else { continue }
      let signer = bundle.verifySignature(trust, at: app.installed).signer
      guard let signer, signer.team.hasSameBytes(as: app.team), let found = signer.chain.last?.fingerprint
      else { continue }
      try registered { () throws(StoreError) in try registry.note(root: found, of: app) }
    }
  }

  /// The seal of the bundle of that name; nil where there is none.
  static func seal(of name: String, in directory: FD) -> [UInt8]? {
    guard
      let root = try? directory.openDirectoryToExamine(name),
      let bundle = try? CodeBundle(in: root, name: name)
    else { return nil }
    return try? bundle.sealDigest()
  }
}
