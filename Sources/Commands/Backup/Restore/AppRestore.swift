// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

/// Installs the apps of a backup that can be had, since their data need a container.
struct AppRestore {
  let backup: RestoredBackup
  let access: any StoreAccess
  /// A directory in which further bundles are.
  let bundles: String?

  /// An app whose data are left out, and why.
  struct Missing {
    let identifier: String
    let reason: String
  }

  /// Sees to it that the apps are there.
  ///
  /// `user` and `home` are whose they are to be, nil for those that are everyone's alone.
  func install(_ apps: [BackupManifest.App], for user: UInt32?, home: String?) throws -> [Missing] {
    var missing: [Missing] = []
    for app in apps where app.home == nil || home != nil {
      func leaveOut(_ reason: String) { missing.append(Missing(identifier: app.identifier, reason: reason)) }
      guard let identifier = AppIdentifier(app.identifier) else {
        leaveOut("that is not an app's identifier")
        continue
      }
      do {
        let there: AppDescription
        if let known = try? access.app(identifier, for: user) {
          there = known
        } else if let bundle = try bundle(of: app) {
          let domain: AppDomain =
            try app.home != nil
            ? AppDomain(home: home) : app.domain == .everyone ? DomainChoice().forNewApp(access) : app.domain
          let installed = try access.install(bundle.fd, named: app.bundle, for: domain)
          access.context.console.say("Installed \(installed.title).")
          there = try access.app(identifier, for: user)
        } else {
          leaveOut("it is not installed; install it, or name a directory that has it with '--bundles'")
          continue
        }
        // An app with the same name that somebody else has signed gets none of its data.
        guard BackupTeam(app.team, root: app.root).includes(there) else {
          leaveOut("the one that is installed is signed by another team, \(there.team.sanitized)")
          continue
        }
      } catch {
        leaveOut("it can't be installed: \(CommandFailure(error).message)")
      }
    }
    return missing
  }

  /// The bundle of an app: from the backup, or from among those that a person has.
  private func bundle(of app: BackupManifest.App) throws -> OwnedFD? {
    if let bundle = backup.bundle(of: app) { return bundle }
    guard let bundles else { return nil }
    let directory = try access.context.openDirectory(bundles)
    for entry in try directory.fd.entries() {
      let name = String(decoding: entry.name, as: UTF8.self)
      guard name.hasSuffix(".app"), let root = try? directory.fd.openDirectory(entry.name),
        let bundle = try? CodeBundle(in: root, name: name), bundle.info.identifier == app.identifier
      else { continue }
      return try directory.fd.openDirectory(entry.name)
    }
    return nil
  }
}
