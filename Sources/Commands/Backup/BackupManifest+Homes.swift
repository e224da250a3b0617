// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Daemon
internal import Glibc
internal import LinuxIO
internal import Policy

// Whose is what in a manifest. That of root's backup is about everybody, and numbers of users say something
// only together with the homes: on another machine, somebody else may have the number.

extension BackupManifest {
  /// The homes that are there: of one user, or of all.
  static func homes(_ access: any StoreAccess, of user: UInt32?) throws -> [Home] {
    if let user {
      guard let home = try? access.home(of: user) else { return [] }
      return [Home(name: home.splitAtName.name, user: user)]
    }
    let path = "\(access.root)/Users"
    do throws(Errno) {
      let users = try FD.cwd.open(path, O_RDONLY | O_DIRECTORY)
      return try users.fd.entries().compactMap { entry in
        // One that is away is in no backup.
        guard let name = String(validating: entry.name, as: UTF8.self), !name.hasPrefix("."),
          name != BackupSet.shared, let status = try? users.fd.status(of: entry.name), status.isDirectory
        else { return nil }
        return Home(name: name, user: status.st_uid)
      }
    } catch {
      throw CommandFailure(error, "can't list the homes in \(path.sanitized): \(error.message)")
    }
  }

  /// What the owner of a home had allowed; nil if the manifest does not say whose is what.
  ///
  /// `isOnlyHome` says whether there is no other home in the backup.
  func rights(
    ofHome name: String, isOnlyHome: Bool
  ) -> (grants: [GrantedPlace], consents: [ConsentStatus])? {
    guard let owner = owner(ofHome: name, isOnlyHome: isOnlyHome) else {
      return grants.isEmpty && consents.isEmpty ? ([], []) : nil
    }
    return (grants.filter { $0.user == owner }, consents.filter { $0.user == owner })
  }

  private func owner(ofHome name: String, isOnlyHome: Bool) -> UInt32? {
    if let homes { return homes.first { $0.name.hasSameBytes(as: name) }?.user }
    let users = Set(grants.map(\.user) + consents.map(\.user))
    return isOnlyHome && users.count == 1 ? users.first : nil
  }

  /// The apps in a home, and those for everyone.
  func apps(forHome name: String) -> [App] {
    apps.filter { app in app.home.map { $0.hasSameBytes(as: name) } ?? true }
  }

  /// The apps that the owner of a home had: one of their own hides everyone's of that identifier.
  ///
  /// What a user has allowed is allowed to these: a grant or a consent ends when another team's app takes the
  /// place of the one that it was given to.
  func apps(seenFromHome name: String) -> [App] {
    let all = apps(forHome: name)
    let own = all.filter { $0.home != nil }
    return all.filter { app in app.home != nil || !own.contains { $0.has(app.identifier) } }
  }

  private static func isInHome(_ path: String, besides name: String) -> Bool {
    let parts = path.parts(between: "/")
    return parts.count > 1 && parts[0] == "Users" && parts[1] != BackupSet.shared
      && !parts[1].hasSameBytes(as: name)
  }

  /// As much of it as the owner of a home may know.
  ///
  /// `found` is the number of the home's owner in the backup itself, which counts where an earlier version
  /// has noted none.
  func reduced(toHome name: String, ownedBy found: UInt32?) -> BackupManifest {
    let owner = homes == nil ? found : owner(ofHome: name, isOnlyHome: false)
    var own = self
    own.apps = apps(forHome: name)
    // Root was told how others call what they have moved in their homes.
    own.grants = grants.filter { $0.user == owner && !Self.isInHome($0.path, besides: name) }
    own.consents = consents.filter { $0.user == owner }
    own.containers = containers?.filter { $0.home.hasSameBytes(as: name) }
    own.homes = owner.map { [Home(name: name, user: $0)] } ?? []
    return own
  }
}
