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
      for app in try strays(in: directory) {
        let isGone: Bool
        do throws(Errno) {
          _ = try directory.directory.fd.status(of: app.bundleName)
          isGone = false
        } catch {
          guard error == .ENOENT else { continue }
          isGone = true
        }
        try registered { () throws(StoreError) in
          if isGone { try registry.forgetStray(app) } else { _ = try registry.give(app, to: user) }
        }
      }
    }
    return try registered { () throws(StoreError) in try registry.apps(seenBy: directory.user) }
  }

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
