// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
internal import Policy
package import Store

/// What has come of an update of an app that may run.
package enum UpdateOutcome {
  case updated(before: InstalledApp, now: InstalledApp, left: [LeftBehind])
  case waits(WaitingUpdate)
}

extension Installer {
  /// Puts another version of an app in the place of the one that is installed in that domain.
  ///
  /// It must be an app of the same identifier and team, and a later version unless `allowingDowngrade`. All
  /// containers stay. A bundle of another name takes its name along.
  package func update(
    _ source: FD, named name: String, for domain: AppDomain, by caller: CallerIdentity,
    allowingDowngrade: Bool = false, _ wait: InstallWait = .init()
  ) throws(AppFailure) -> (before: InstalledApp, now: InstalledApp, left: [LeftBehind]) {
    let report = InstallReport(wait)
    let directory = try openForUpdate(domain, by: caller)
    let new = try prepare(
      source, named: name, in: directory, by: caller, allowingDowngrade, mayRun: false, report)
    return try replace(
      new.before, by: new.copy, named: name, in: directory, by: caller, waiting: nil, report)
  }

  /// The same where the app may run: then the new version is copied and verified now, and waits until the
  /// old one runs no more, see ``place(_:)``.
  package func updateWhenClosed(
    _ source: FD, named name: String, for domain: AppDomain, by caller: CallerIdentity,
    allowingDowngrade: Bool = false, _ wait: InstallWait = .init()
  ) throws(AppFailure) -> UpdateOutcome {
    let report = InstallReport(wait)
    let directory = try openForUpdate(domain, by: caller)
    let new = try prepare(
      source, named: name, in: directory, by: caller, allowingDowngrade, mayRun: true, report)
    if observer.users(of: new.before.path).isEmpty {
      do throws(AppFailure) {
        let done = try replace(
          new.before, by: new.copy, named: name, in: directory, by: caller, waiting: nil, report)
        return .updated(before: done.before, now: done.now, left: done.left)
      } catch .failed(_, _, .EBUSY) {
        // It has just been started, and nothing was changed.
      }
    }
    let place = BundlePlace(parent: directory.path, name: name)
    let app = new.copy.contents.installed(
      as: place, for: directory.user, seal: new.copy.seal, at: time())
    return .waits(
      try keep(new.copy, as: app, for: new.before, by: caller, allowingDowngrade: allowingDowngrade))
  }

  func openForUpdate(
    _ domain: AppDomain, by caller: CallerIdentity
  ) throws(AppFailure) -> AppsDirectory {
    try recover(domain, by: caller)
    return try open(domain, by: caller, doing: "update apps in", making: false)
  }

  /// Copies and verifies another version of an app that is installed.
  private func prepare(
    _ source: FD, named name: String, in directory: borrowing AppsDirectory, by caller: CallerIdentity,
    _ allowingDowngrade: Bool, mayRun: Bool, _ report: InstallReport
  ) throws(AppFailure) -> (before: InstalledApp, copy: VerifiedCopy) {
    try BundleName.check(name)
    let seen = try look(at: source, name, caller, report)
    let before = try checkUpdate(seen.contents, named: name, in: directory, allowingDowngrade, mayRun, report)
    try authorizeRemoval(of: before, from: directory, by: caller, doing: "update apps in")
    let copy = try copy(source, named: name, seen, for: directory, caller, report)
    let after = try checkUpdate(copy.contents, named: name, in: directory, allowingDowngrade, mayRun, report)
    guard after == before else { throw .busy(identifier: before.identifier.text) }
    return (before, copy)
  }

  /// Puts a verified copy in the place of what is installed; `waiting` is its name if it has waited.
  func replace(
    _ before: InstalledApp, by copy: VerifiedCopy, named name: String, in directory: borrowing AppsDirectory,
    by caller: CallerIdentity, waiting: String?, _ report: InstallReport
  ) throws(AppFailure) -> (before: InstalledApp, now: InstalledApp, left: [LeftBehind]) {
    let place = BundlePlace(parent: directory.path, name: name)
    let app = copy.contents.installed(as: place, for: directory.user, seal: copy.seal, at: time())
    try authorizeRemoval(of: before, from: directory, by: caller, doing: "update apps in")
    let old = try registered { () throws(StoreError) in
      try StagedTree(forTakingIn: store, from: before.path)
    }
    let noted = try registered { () throws(StoreError) in
      try registry.begin(.update(before, to: app, waiting: waiting))
    }
    defer { registry.leave(noted) }
    do throws(Errno) {
      try exchange(copy.tree, noted.intent, in: directory.directory.fd, taking: old)
    } catch {
      // Which of several steps has failed, the tree knows.
      try end(noted, directory.directory.fd)
      throw .failed(doing: "update", path: "\(treePath)/\(before.path)", errno: error)
    }
    try commit(noted, directory.directory.fd)
    report.enter(.finishing)
    copy.tree.remove()
    old.remove()
    forgetUnknownUpdates(besides: before)
    let left = try completeContainers(of: app, before: before)
    try makeContainers(for: app, by: caller)
    return (before, app, left)
  }

  /// Throws what stands against another version of what is installed; that is returned.
  ///
  /// One that runs stands against it too, unless that `mayRun`.
  func checkUpdate(
    _ contents: AppContents, named name: String, in directory: borrowing AppsDirectory,
    _ allowingDowngrade: Bool, _ mayRun: Bool, _ report: InstallReport
  ) throws(AppFailure) -> InstalledApp {
    let apps = try apps(seenIn: directory)
    let known = apps.first { $0.identifier.isSame(as: contents.identifier) && $0.user == directory.user }
    guard let known else {
      let path = BundlePlace(parent: directory.path, name: name).path
      if let other = apps.first(where: { $0.path.hasSameBytes(as: path) }) {
        throw .otherIdentifier(installed: other.identifier.text, new: contents.identifier.text)
      }
      throw .notInstalled(identifier: contents.identifier.text, domain: "/\(directory.path)")
    }
    guard directory.holds(known) else {
      throw .notInstalled(identifier: contents.identifier.text, domain: "/\(directory.path)")
    }
    // The app's containers, and what its users have decided, are under the identifier as it was installed.
    guard known.identifier.text.hasSameBytes(as: contents.identifier.text) else {
      throw .otherIdentifier(installed: known.identifier.text, new: contents.identifier.text)
    }
    if !mayRun { try refuseUpdateWhileRunning(known) }
    try checkTeam(contents, among: apps, for: directory.user)
    let succeeds = try succeeds(contents, known)
    try contents.checkIsLater(than: known, allowingDowngrade, succeeding: succeeds)
    try checkTypes(contents, named: name, for: directory.user, report)
    if known.bundleName != name {
      let others = apps.filter { $0 != known }
      try directory.check(name, among: others, besides: known.bundleName, in: treePath)
    }
    return known
  }

  /// The change itself: one step where the name stays, and two where it does not.
  private func exchange(
    _ new: StagedTree, _ intent: TreeIntent, in directory: FD, taking old: StagedTree
  ) throws(Errno) {
    guard let before = intent.before else { throw .EINVAL }
    let (place, oldPlace) = (BundlePlace(path: intent.app.path), BundlePlace(path: before.path))
    guard place != oldPlace else {
      do throws(Errno) {
        return try observer.changing(.replaced(place, seal: intent.app.seal, before: before.seal)) {
          () throws(Errno) in try new.replace(place.name, in: directory)
        }
      } catch .ENOENT {
        // Someone has removed the old one behind our back, or it is in a home that was ejected.
        if isInEjectedHome(place) { throw .ENOMEDIUM }
        return try observer.changing(.appears(place, seal: intent.app.seal)) { () throws(Errno) in
          try new.place(as: place.name, in: directory)
        }
      }
    }
    try observer.changing(.appears(place, seal: intent.app.seal)) { () throws(Errno) in
      try new.place(as: place.name, in: directory)
    }
    try take(oldPlace, seal: before.seal, from: directory, to: old)
  }

  /// Takes a bundle away; one that is gone is gone, and its name is free.
  func take(
    _ place: BundlePlace, seal: [UInt8], from directory: FD, to old: StagedTree
  ) throws(Errno) {
    do throws(Errno) {
      try observer.changing(.goes(place, seal: seal)) { () throws(Errno) in
        do throws(Errno) { try old.take(place.name, from: directory) } catch .ENOENT {
          try requireGone(place, from: directory)
        }
      }
    } catch .ENOENT {
      try requireGone(place, from: directory)
    }
  }

  /// Throws if a bundle that was not found may be somewhere: its home may have been ejected just now, or
  /// before, and this is another one.
  private func requireGone(_ place: BundlePlace, from directory: FD) throws(Errno) {
    if directory.has(place.name) || isInEjectedHome(place) { throw .ENOMEDIUM }
  }

  /// Whether a bundle may be in a home that was ejected; if nobody can tell, it may be.
  private func isInEjectedHome(_ place: BundlePlace) -> Bool {
    (try? registry.isInEjectedHome(place.path)) ?? true
  }
}

extension AppContents {
  /// The team must be the same; so must the version not be, unless any will do.
  func checkIsLater(
    than app: InstalledApp, _ allowingDowngrade: Bool, succeeding isSuccessor: Bool
  ) throws(AppFailure) {
    guard signer == app.signer || isSuccessor else {
      throw otherTeam(than: app)
    }
    guard !allowingDowngrade else { return }
    let (old, new) = (AppVersion(app.version), AppVersion(version))
    let (oldShort, newShort) = (AppVersion(app.shortVersion), AppVersion(shortVersion))
    guard (old, oldShort) < (new, newShort) else {
      if old == new, oldShort == newShort {
        throw .sameVersion(identifier: identifier.text, version: versionWords)
      }
      throw .olderVersion(
        identifier: identifier.text, installed: Self.words(app.version, app.shortVersion), new: versionWords)
    }
  }

  private var versionWords: String { Self.words(version, shortVersion) }

  private static func words(_ version: String, _ shortVersion: String) -> String {
    if shortVersion.isEmpty || shortVersion == version { return version.isEmpty ? "no version" : version }
    return version.isEmpty ? shortVersion : "\(shortVersion) (\(version))"
  }
}
