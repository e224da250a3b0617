// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store

extension Installer {
  /// The apps that the user of a directory sees.
  ///
  /// What is noted in it for somebody else than its home's owner is the owner's from now on, and forgotten if
  /// its bundle is gone: otherwise nobody could start, update or remove it, or install it again.
  func apps(seenIn directory: borrowing AppsDirectory) throws(AppFailure) -> [InstalledApp] {
    if let user = directory.user {
      let strays = try strays(in: directory)
      let hasOther = try strays.isEmpty ? false : hasEjectedHome(directory.path)
      for app in strays { try settle(app, for: user, in: directory.directory.fd, hasOther) }
    }
    return try registered { () throws(StoreError) in try registry.apps(seenBy: directory.user) }
  }

  /// Whether a home was ejected that had the name of the one in which a directory is.
  func hasEjectedHome(_ path: String) throws(AppFailure) -> Bool {
    try registered { () throws(StoreError) in try registry.isInEjectedHome(path) }
  }

  /// Whether an app is in a home that was ejected, and stands in nobody's way.
  func isLost(_ app: InstalledApp) throws(AppFailure) -> Bool {
    try registered { () throws(StoreError) in try registry.isLost(app) }
  }

  /// Brings what is noted of a stray in line with what is there, unless it is noted of another home of that
  /// name, which may come back.
  private func settle(
    _ app: InstalledApp, for user: UInt32, in directory: FD, _ hasOther: Bool
  ) throws(AppFailure) {
    do throws(Errno) { _ = try directory.status(of: app.bundleName) } catch {
      guard error == .ENOENT, !hasOther, !isOfItsAccount(app) else { return }
      return try forget(app, in: directory)
    }
    if hasOther, Self.seal(of: app.bundleName, in: directory) != app.seal { return }
    if try registered({ () throws(StoreError) in try registry.give(app, to: user) }) { return }
    let moves = try moves(of: app, to: user)
    if moves.count > 1 { _ = try registered { () throws(StoreError) in try registry.give(moves) } }
  }

  /// Whether an app is noted for the account after which its home is named: then it is the directory that is
  /// not the home, as where a disk is not mounted.
  private func isOfItsAccount(_ app: InstalledApp) -> Bool {
    guard let user = app.user, let home = Homes.name(in: app.path) else { return false }
    return Account.named(home)?.uid == user
  }

  /// Its name is free afterwards, in what is mounted too.
  private func forget(_ app: InstalledApp, in directory: FD) throws(AppFailure) {
    do throws(Errno) {
      try observer.changing(.goes(BundlePlace(path: app.path), seal: app.seal)) { () throws(Errno) in
        // It may have come back just now.
        if directory.has(app.bundleName) { throw .EEXIST }
      }
    } catch {
      return
    }
    try registered { () throws(StoreError) in try registry.forgetStray(app) }
  }

  /// Which apps have to change their users so that one can become a user's: the other copy that this user has
  /// may be a stray as well, and so on, as where two accounts have exchanged their numbers.
  private func moves(
    of app: InstalledApp, to user: UInt32
  ) throws(AppFailure) -> [(app: InstalledApp, user: UInt32)] {
    let (all, intents) = try registered { () throws(StoreError) in
      (try registry.apps(), try registry.intents())
    }
    var moves = [(app: app, user: user)]
    while let last = moves.last, last.user != app.user, moves.count < Self.mostMoves {
      let other = all.first { $0.user == last.user && $0.identifier.isSame(as: app.identifier) }
      guard let other, !intents.contains(where: { $0.intent.isAbout(other) }) else { break }
      let owner = try registered { () throws(StoreError) in
        try store.owner(ofHomeIn: other.path, registry)
      }
      guard let owner, owner != last.user else { break }
      moves.append((other, owner))
    }
    return moves
  }

  /// That many accounts exchange their numbers at once, if any do.
  private static let mostMoves = 16

  /// The apps in a directory that are noted for somebody else than its user.
  ///
  /// Those are left out to which something is being done: whoever ends that finds them as they were.
  func strays(in directory: borrowing AppsDirectory) throws(AppFailure) -> [InstalledApp] {
    guard let user = directory.user else { return [] }
    let path = directory.path
    let found = try registered { () throws(StoreError) in try registry.apps(below: path, notOf: user) }
    if found.isEmpty { return [] }
    let intents = try registered { () throws(StoreError) in try registry.intents() }
    var strays: [InstalledApp] = []
    for app in found where directory.holds(app) && !intents.contains(where: { $0.intent.isAbout(app) }) {
      strays.append(app)
    }
    return strays
  }
}
