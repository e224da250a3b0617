// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import LinuxIO
package import Policy
package import Store
internal import Synchronization

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
    return try Self.workOnUpdates.withLock { (_) throws(AppFailure) in
      do throws(Errno) {
        try copy.tree.place(as: waiting.name, in: updates.fd)
        try updates.fd.synchronize(dataOnly: false)
      } catch {
        throw .failed(doing: "keep an update in", path: path, errno: error)
      }
      // What is not noted in the end is unknown.
      defer { removeUnknownUpdates() }
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
    let updates = try registered { () throws(StoreError) in try store.openUpdates(for: waiting.app.path) }
    let report = InstallReport(InstallWait())
    let tree = StagedTree(keptAs: waiting.name, in: updates)
    let name = waiting.app.bundleName
    let copy = try verify(tree, name, KnownDigests(), report)
    guard copy.seal == waiting.app.seal else {
      throw .refused(bundle: name, [Bundles.Finding(.signatureMismatch)])
    }
    let before = try checkUpdate(
      copy.contents, named: name, in: directory, waiting.allowsDowngrade, false, report)
    return try replace(
      before, by: copy, named: name, in: directory, by: caller, waiting: waiting.name, report)
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
    guard let waiting, directory.holds(waiting.app), try drop(waiting) else {
      throw .nothingWaits(identifier: identifier.text)
    }
    return waiting
  }

  /// Gives up an update that waits, unless another one does by now; whether it was there.
  @discardableResult
  package func drop(_ waiting: WaitingUpdate) throws(AppFailure) -> Bool {
    let isGone = try registered { () throws(StoreError) in try registry.drop(waiting) }
    forgetUnknownUpdates()
    return isGone
  }

  /// Removes copies that wait for nothing, as far as that can be done: whoever comes next tries again.
  func forgetUnknownUpdates() {
    Self.workOnUpdates.withLock { _ in removeUnknownUpdates() }
  }

  /// The lock is held: a copy that is about to be noted is unknown.
  private func removeUnknownUpdates() {
    guard let waiting = try? registry.waitingUpdates(), let intents = try? registry.intents() else { return }
    // What is just being put in place is known until that is done.
    let known = Set(waiting.map(\.name) + intents.compactMap(\.intent.waiting))
    if store.state.has(StoreLayout.updatesName), let updates = try? store.openUpdates() {
      Self.remove(from: updates.fd, besides: known)
    }
    for home in (try? registry.homesElsewhere()) ?? [] {
      if let updates = try? store.homeElsewhere(of: home)?.openUpdates() {
        Self.remove(from: updates.fd, besides: known)
      }
    }
  }

  private static func remove(from updates: FD, besides known: Set<String>) {
    guard let entries = try? updates.entries() else { return }
    for entry in entries where !known.contains(String(decoding: entry.name, as: UTF8.self)) {
      try? updates.removeTree(entry.name)
    }
  }

  private static let workOnUpdates = Mutex(())

  private func domain(of waiting: WaitingUpdate) throws(AppFailure) -> AppDomain {
    guard waiting.app.user != nil else { return AppDomain(ofEveryones: waiting.app.path) }
    guard let home = Homes.name(in: waiting.app.path) else {
      throw .notInstalled(identifier: waiting.app.identifier.text, domain: "/\(waiting.app.path)")
    }
    return .user(home)
  }
}
