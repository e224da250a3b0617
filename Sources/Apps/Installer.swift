// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
internal import Glibc
package import LinuxIO
internal import Policy
package import Store

/// Installs, updates and removes apps, each in one step: whenever it is stopped, there is the old state or
/// the new one.
///
/// 1. The signature of the source is looked at; most of what is no good is refused before anything is copied.
/// 2. The source is copied to where nobody sees it. The copy is what is verified, and what is installed: the
///    source is not asked again.
/// 3. What is about to be done is noted in the registry (``TreeIntent``).
/// 4. One rename changes the tree.
/// 5. The registry is changed and the note is taken off, both at once.
///
/// Stopped before 4 it is the old state, after it the new one; ``recover()`` tells which by the seal of what
/// is in the place.
///
/// One installer serves any number of threads. Two that want the same app take no turns: the second is told
/// so.
package final class Installer: Sendable {
  let store: Store
  let registry: Registry
  let containers: Containers
  let trust: Trust
  let observer: any TreeObserver
  /// Now, in seconds since 1970.
  let time: @Sendable () -> Int64

  /// `containers` is the store's own, or the mounted tree's where a daemon serves it; `trust` is
  /// ``StoreTrust``'s.
  package init(
    _ store: Store, _ registry: Registry, containers: Containers, trust: Trust,
    observer: any TreeObserver = NoTreeObserver(),
    time: @escaping @Sendable () -> Int64 = { Int64(Glibc.time(nil)) }
  ) {
    self.store = store
    self.registry = registry
    self.containers = containers
    self.trust = trust
    self.observer = observer
    self.time = time
  }

  /// Installs the bundle that a directory, open for reading, is.
  ///
  /// `name` is the directory's own, with which it will be found in the tree. Its files are read as `caller`.
  package func install(
    _ source: FD, named name: String, for domain: AppDomain, by caller: CallerIdentity,
    _ wait: InstallWait = .init()
  ) throws(AppFailure) -> InstalledApp {
    try BundleName.check(name)
    try recover(domain, by: caller)
    let report = InstallReport(wait)
    let seen = try look(at: source, name, caller, report)
    let directory = try open(domain, by: caller, doing: "install apps in", making: true)
    try checkNew(seen.contents, named: name, in: directory, report)

    let copy = try copy(source, named: name, seen, for: directory, caller, report)
    try checkNew(copy.contents, named: name, in: directory, report)
    let place = BundlePlace(parent: directory.path, name: name)
    let app = copy.contents.installed(as: place, for: directory.user, seal: copy.seal, at: time())
    let noted = try registered { () throws(StoreError) in try registry.begin(.install(app)) }
    defer { registry.leave(noted) }
    #if DEBUG
      Halt.at(.bundleStaged)
    #endif
    do throws(Errno) {
      try observer.changing(.appears(place, seal: app.seal)) { () throws(Errno) in
        try copy.tree.place(as: name, in: directory.directory.fd)
      }
    } catch {
      try? registry.abandon(noted)
      if error == .EEXIST {
        throw .inTheWay(path: "/\(place.path)", what: "something that has just been created")
      }
      throw .failed(doing: "install", path: "\(treePath)/\(place.path)", errno: error)
    }
    try commit(noted, directory.directory.fd)
    report.enter(.finishing)
    try makeContainers(for: app, by: caller)
    return app
  }

  /// Throws what stands against an app that is not there yet.
  private func checkNew(
    _ contents: AppContents, named name: String, in directory: borrowing AppsDirectory,
    _ report: InstallReport
  ) throws(AppFailure) {
    var apps: [InstalledApp] = []
    for app in try self.apps(seenIn: directory) where try !isLost(app) { apps.append(app) }
    if let known = apps.first(where: {
      $0.identifier.isSame(as: contents.identifier) && $0.user == directory.user
    }) {
      throw .alreadyInstalled(identifier: known.identifier.text, path: "/\(known.path)")
    }
    try checkTeam(contents, among: apps, for: directory.user)
    try checkTypes(contents, named: name, for: directory.user, report)
    try directory.check(name, among: apps, in: treePath)
  }

  /// Makes sure that the change of a directory has reached the disk, and notes that it is done.
  ///
  /// From here on nothing is taken back: what fails now, ``recover()`` ends.
  func commit(_ noted: NotedIntent, _ directory: FD?) throws(AppFailure) {
    if let directory {
      do throws(Errno) { try directory.synchronize(dataOnly: false) } catch {
        throw .failed(doing: "write to disk", path: "\(treePath)/\(noted.intent.app.path)", errno: error)
      }
    }
    // What has data under a former root of the team must not go on in it beside the app that gets it.
    let former = try registered { () throws(StoreError) in try formerApps(noted.intent) }
    if let former { observer.end(former) }
    try registered { () throws(StoreError) in try registry.finish(noted) }
    if let former { observer.end(former) }
    let app = noted.intent.app
    noteDeclarations(.command(of: app.user ?? 0, about: RecoveryScope.home(in: app.path.utf8)))
  }
}

extension Installer {
  /// Refuses what comes under another root than its team's, or would share containers with the apps of
  /// another team.
  ///
  /// What users have for themselves is nobody else's business; their containers are guarded one by one.
  func checkTeam(
    _ contents: AppContents, among apps: [InstalledApp], for user: UInt32?
  ) throws(AppFailure) {
    try registered { () throws(StoreError) in
      do throws(StoreError) { try registry.check(contents.signer, for: user) } catch {
        // What is not there any more keeps no other root away.
        guard case .teamOfOtherRoot = error, let user, try containers.forgetMissing(of: user) else {
          throw error
        }
        try registry.check(contents.signer, for: user)
      }
    }
    var others: [InstalledApp] = []
    for app in apps where app.user == nil || app.user == user {
      if try !succeeds(contents, app) { others.append(app) }
    }
    try contents.checkTeam(among: others)
    if let user { try registered { () throws(StoreError) in try checkContainers(contents, of: user) } }
  }
}

extension Installer {
  /// Whether an installed app is of the same team, under a root that an administrator has replaced by this
  /// one's.
  func succeeds(_ contents: AppContents, _ app: InstalledApp) throws(AppFailure) -> Bool {
    try registered { () throws(StoreError) in try registry.isSuccessor(contents.signer, of: app.signer) }
  }

  /// Refuses an app that would find what another team's has left to the user: it could not be used.
  private func checkContainers(_ contents: AppContents, of user: UInt32) throws(StoreError) {
    lazy var home = try? store.home(of: user)
    for (kind, identifier) in ContainerKind.named(
      by: contents.identifier, groups: contents.groups, clouds: contents.clouds)
    {
      let known = try registry.containers(
        kind: kind, identifier: identifier, user: user, isMarkedForRemoval: false)
      for container in known {
        guard let other = container.team, other != contents.signer,
          try !registry.isSuccessor(contents.signer, of: other),
          (try? store.tree.status(at: container.path)) != nil
        else { continue }
        throw .container(container, at: "/\(container.path)", isNotFor: contents.signer, but: other)
      }
      // What no record is about is the team's that is noted on it.
      guard let home else { continue }
      if let container = store.unrecordedContainer(kind, identifier, of: user, home: home),
        !known.contains(where: { $0.path.hasSameBytes(as: container.path) }),
        let noted = container.team, noted != contents.signer,
        try !registry.isSuccessor(contents.signer, of: noted)
      {
        throw .container(container, at: "/\(container.path)", isNotFor: contents.signer, but: noted)
      }
    }
  }
}

extension AppContents {
  /// Two teams of one name are distinguished by their roots.
  func otherTeam(than app: InstalledApp) -> AppFailure {
    let isNamesake = app.team.hasSameBytes(as: team)
    return .otherTeam(
      identifier: identifier.text, installed: isNamesake ? app.signer.words : app.team,
      new: isNamesake ? signer.words : team)
  }

  fileprivate func checkTeam(among apps: [InstalledApp]) throws(AppFailure) {
    for app in apps where app.signer != signer {
      if app.identifier.isSame(as: identifier) {
        throw otherTeam(than: app)
      }
      for group in groups + clouds where (app.groups + app.clouds).contains(where: { $0.isSame(as: group) }) {
        let other = app.team.hasSameBytes(as: team) ? app.signer.words : app.team
        throw .groupOfOtherTeam(group: group.text, app: app.identifier.text, team: other)
      }
    }
  }
}
