// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy
package import Store

extension Installer {
  /// Removes an app; its containers too, unless they are to be kept.
  ///
  /// The containers that go are those of users who have the app no more, and those of groups of which they
  /// have no other member. What lies in iCloud stays, and so does what is not the users' whose containers
  /// they are, or is protected by flags: `left`.
  ///
  /// Of an app that is gone already, what it has left is removed, and by the name of a container in iCloud
  /// that none of its team's apps uses any more, that container; there is no app to give then.
  @discardableResult
  package func uninstall(
    _ identifier: AppIdentifier, of domain: AppDomain, by caller: CallerIdentity, keepingData: Bool = false
  ) throws(AppFailure) -> (app: InstalledApp?, left: [LeftBehind]) {
    try recover(domain, by: caller)
    // Made again if somebody has moved it away: the app is gone then, and the list must learn it.
    let directory = try open(domain, by: caller, doing: "remove apps from", making: true)
    let apps = try apps(seenIn: directory)
    var found = apps.first { $0.identifier.isSame(as: identifier) && $0.user == directory.user }
    if found.map({ !directory.holds($0) }) ?? false {
      // One that could not become its user's, who has another copy.
      found = try strays(in: directory).first { $0.identifier.isSame(as: identifier) }
      if found == nil {
        throw .notInstalled(identifier: identifier.text, domain: "/\(directory.path)")
      }
    }
    guard let app = found else {
      return (nil, try removeLeft(by: identifier, directory, caller, keepingData))
    }
    try authorizeRemoval(of: app, from: directory, by: caller, doing: "remove apps from")
    try refuseWhileRunning(app)
    let old = try registered { () throws(StoreError) in
      try StagedTree(forTakingIn: store, from: app.path)
    }
    let noted = try registered { () throws(StoreError) in
      try registry.begin(.uninstall(app, keepingData: keepingData))
    }
    defer { registry.leave(noted) }
    do throws(Errno) {
      try take(BundlePlace(path: app.path), seal: app.seal, from: directory.directory.fd, to: old)
    } catch {
      try? registry.abandon(noted)
      throw .failed(doing: "remove", path: "\(treePath)/\(app.path)", errno: error)
    }
    try commit(noted, directory.directory.fd)
    old.remove()
    forgetUnknownUpdates(besides: app)
    return (app, try completeContainers(of: app))
  }

  /// Removes the containers that an app has left that is not installed any more, or the container in iCloud
  /// of that name.
  private func removeLeft(
    by identifier: AppIdentifier, _ directory: borrowing AppsDirectory, _ caller: CallerIdentity,
    _ keepingData: Bool
  ) throws(AppFailure) -> [LeftBehind] {
    let user = directory.user
    if user == nil { try authorizeRemoval(from: directory, by: caller, doing: "remove apps from") }
    let count = try registered { () throws(StoreError) in
      if keepingData { return 0 }
      try containers.noteUnrecorded(identifier, of: user ?? caller.uid)
      return try registry.doomLeft(by: identifier, of: user, for: caller.uid)
    }
    guard count > 0 else {
      throw .notInstalled(identifier: identifier.text, domain: "/\(directory.path)")
    }
    return try registered { () throws(StoreError) in
      try removeMarked(of: user, named: [identifier]).left(of: [identifier], user: user)
    }
  }

  /// What runs keeps its bundle.
  func refuseWhileRunning(_ app: InstalledApp) throws(AppFailure) {
    let users = observer.users(of: app.path)
    if !users.isEmpty { throw .running(identifier: app.identifier.text, users) }
  }

  func refuseUpdateWhileRunning(_ app: InstalledApp) throws(AppFailure) {
    let users = observer.users(of: app.path)
    if !users.isEmpty { throw .runningOldVersion(identifier: app.identifier.text, users) }
  }
}
