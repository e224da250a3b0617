// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
package import Policy
package import Store

// Updates that wait until their apps run no more.
//
// The copy has been verified when it begins to wait, and is where no view reaches. It gets its name there
// before the registry has it, and loses it after that: so what the registry does not know may be removed.
// Putting it in place is an update like any other, with the copy as its source: all is judged again, by what
// there is by then.

extension Installer {
  /// Keeps a verified copy until what is installed runs no more; what has waited before is removed.
  func keep(
    _ copy: VerifiedCopy, as app: InstalledApp, for before: InstalledApp, by caller: CallerIdentity,
    allowingDowngrade: Bool
  ) throws(AppFailure) -> WaitingUpdate {
    let waiting = WaitingUpdate(
      name: UUIDText.random(), app: app, before: before, requester: caller.requester,
      allowsDowngrade: allowingDowngrade, since: time())
    let path = "\(store.path)/state/updates"
    let updates = try registered { () throws(StoreError) in try store.openUpdates(for: before.path) }
    return try Self.working(on: updates.fd) { () throws(AppFailure) in
      do throws(Errno) {
        try copy.tree.place(as: waiting.name, in: updates.fd)
        try updates.fd.synchronize(dataOnly: false)
      } catch {
        throw .failed(doing: "keep an update in", path: path, errno: error)
      }
      // What is not noted in the end is unknown.
      defer { removeUnknownUpdates(from: updates.fd) }
      try registered { () throws(StoreError) in try registry.note(waiting) }
      return waiting
    }
  }

  /// Puts an update in its place that has waited; its app must not run.
  ///
  /// It is verified as if it came from elsewhere: keys may be trusted no more, and disks err.
  package func place(
    _ waiting: WaitingUpdate
  ) throws(AppFailure) -> (before: InstalledApp, now: InstalledApp, left: [LeftBehind]) {
    let caller = CallerIdentity(waiting.requester)
    let directory = try openForUpdate(try domain(of: waiting), by: caller)
    try checkPlacing(waiting)
    let updates = try registered { () throws(StoreError) in try store.openUpdates(for: waiting.app.path) }
    let report = InstallReport(InstallWait())
    let tree = StagedTree(keptAs: waiting.name, in: updates)
    let name = waiting.app.bundleName
    let copy = try verify(tree, name, KnownDigests(), for: caller, report)
    guard copy.seal == waiting.app.seal else {
      throw .refused(bundle: name, [Bundles.Finding(.signatureMismatch)])
    }
    let before = try checkUpdate(
      copy.contents, named: name, in: directory, waiting.allowsDowngrade, false, report)
    return try replace(
      before, by: copy, named: name, in: directory, by: caller, waiting: waiting.name, report)
  }

  /// Throws what the registry has against it: before the copy is read, which takes long.
  private func checkPlacing(_ waiting: WaitingUpdate) throws(AppFailure) {
    do throws(StoreError) {
      try registry.check(.update(waiting.before, to: waiting.app, waiting: waiting.name))
    } catch {
      // What has become of the app is judged with the copy.
      guard case .appBusy = error else { throw .store(error) }
    }
  }

  /// Gives up an update that waits; `caller` must be allowed to make updates there.
  package func cancelUpdate(
    of identifier: AppIdentifier, for domain: AppDomain, by caller: CallerIdentity
  ) throws(AppFailure) -> WaitingUpdate {
    let directory = try openForUpdate(domain, by: caller)
    let user = directory.user
    let waiting = try registered { () throws(StoreError) in
      try registry.waitingUpdate(of: identifier, for: user)
    }
    if user == nil { try authorizeRemoval(from: directory, by: caller, doing: "update apps in") }
    guard let waiting, directory.holds(waiting.app), try drop(waiting) else {
      throw .nothingWaits(identifier: identifier.text)
    }
    return waiting
  }

  /// Gives up an update that waits, unless another one does by now; whether it was there.
  @discardableResult
  package func drop(_ waiting: WaitingUpdate) throws(AppFailure) -> Bool {
    let isGone = try registered { () throws(StoreError) in try registry.drop(waiting) }
    forgetUnknownUpdates(besides: waiting.app)
    return isGone
  }

  /// Removes copies that wait for nothing, as far as somebody goes and that can be done: whoever comes next
  /// tries again.
  func forgetUnknownUpdates(_ scope: RecoveryScope) {
    var homes: [[UInt8]] = []
    switch scope {
    case .store, .machine, .command(_, nil): break
    case .home(let name), .command(_, let name?): homes = [name]
    }
    if case .home = scope {} else { forgetUnknownUpdates(inHome: nil) }
    for home in homes { forgetUnknownUpdates(inHome: home) }
  }

  /// The same where updates of an app wait.
  func forgetUnknownUpdates(besides app: InstalledApp) {
    let home = RecoveryScope.home(in: app.path.utf8)
    let isElsewhere = store.homeElsewhere(of: app.path) != nil
    forgetUnknownUpdates(inHome: isElsewhere ? home : nil)
  }

  private func forgetUnknownUpdates(inHome home: [UInt8]?) {
    let updates: OwnedFD?
    if let home {
      let path = "Users/\(String(decoding: home, as: UTF8.self))/"
      updates = (try? store.homeElsewhere(of: path)?.openUpdates(making: false)) ?? nil
    } else {
      updates = store.state.has(StoreLayout.updatesName) ? try? store.openUpdates() : nil
    }
    guard let updates else { return }
    try? Self.working(on: updates.fd) { removeUnknownUpdates(from: updates.fd) }
  }

  /// It is the caller's turn: a copy that is about to be noted is unknown.
  private func removeUnknownUpdates(from updates: FD) {
    guard let waiting = try? registry.waitingUpdates(), let intents = try? registry.intents() else { return }
    // What is just being put in place is known until that is done.
    let known = Set(waiting.map(\.name) + intents.compactMap(\.intent.waiting))
    guard let entries = try? updates.entries(), let directory = try? updates.duplicated() else { return }
    let unknown = entries.map(\.name).filter { !known.contains(String(decoding: $0, as: UTF8.self)) }
    try? Leftovers.ofProcess.remove(unknown, from: directory) { (updates, name) throws(Errno) in
      try? updates.removeTree(name)
    }
  }

  /// One at a time works on the copies on one filesystem.
  private static func working<Result>(
    on updates: FD, _ body: () throws(AppFailure) -> Result
  ) throws(AppFailure) -> Result {
    let device = (try? updates.statusInMemory()).map { UInt64($0.st_dev) } ?? 0
    return try turns.with(device, body)
  }

  private static let turns = KeyedTurns<UInt64>()

  private func domain(of waiting: WaitingUpdate) throws(AppFailure) -> AppDomain {
    guard waiting.app.user != nil else { return AppDomain(ofEveryones: waiting.app.path) }
    guard let home = Homes.name(in: waiting.app.path) else {
      throw .notInstalled(identifier: waiting.app.identifier.text, domain: "/\(waiting.app.path)")
    }
    return .user(home)
  }
}
