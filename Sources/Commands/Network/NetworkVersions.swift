// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Apps
internal import Bundles
internal import JSON
internal import LinuxIO
internal import Policy
internal import Store

// A server can't sign, but it can offer what was signed once: an app with a fault that has been mended since,
// also after it has offered no such app for a while. So an app of a network goes back to an earlier version
// only if its team says so, in an index (`insula index`, as for `update --all`) that was made after the
// present version was installed. An index that is older than one that this machine has seen says nothing.

/// Which versions of a network's apps this machine has, or had last.
final class NetworkVersions {
  /// A version of an app that is installed, waits to be installed, or was installed last.
  struct Known: Codable, Equatable {
    let version: String
    let build: String
    let team: String
    let root: String?
    /// When it came to this machine, in seconds since 1970.
    let since: Int64

    init(_ app: AppDescription) {
      // What waits has been accepted: it is the one to go back from.
      (version, build) = (app.update?.version ?? app.version, app.update?.build ?? app.build)
      (team, root, since) = (app.team, app.root, app.update?.since ?? app.installed)
    }
  }

  private static let file = "network-versions"
  private static let sizeLimit = 4 << 20
  private let access: any StoreAccess
  /// Apps that the network had and has no more, by identifier.
  private var removed: [String: Known]
  /// What teams of the network promise; nil where no index counts.
  private let index: (index: PackageIndex, signer: Signer)?

  /// `path` is where the server's bundles are.
  init(_ access: any StoreAccess, at path: String) throws {
    self.access = access
    removed = try Self.read(access)
    index = try Self.index(at: path, access)
  }

  private static func read(_ access: any StoreAccess) throws -> [String: Known] {
    let store = try access.openedStore()
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try store.state.contents(of: file, limit: sizeLimit)
    } catch {
      if error == .ENOENT { return [:] }
      throw CommandFailure(error, "can't read state/\(file) of the store: \(error.message)")
    }
    guard let known = try? JSONText.decode([String: Known].self, from: bytes) else {
      throw CommandFailure(
        .failed,
        "state/\(file) of the store is damaged: it says which versions there were of apps that the network "
          + "has taken back; restore it from a backup, or remove it")
    }
    return known
  }

  /// The server's index, if a team of the network has signed it and it is no older than the last one.
  private static func index(
    at path: String, _ access: any StoreAccess
  ) throws -> (index: PackageIndex, signer: Signer)? {
    let context = access.context
    let directory = try context.openDirectory(path)
    // A server's index may be anything, or hang: then nothing goes back.
    guard let file = try? directory.fd.openToExamine(PackageIndex.fileName),
      let bytes = try? file.fd.contentsIfRegular(limit: PackageIndex.sizeLimit),
      let place = try access.openedStore().openTrust(of: .network)
    else { return nil }
    // The machine's own roots say nothing of the network's apps.
    let trust = Trust(roots: try TrustDirectory(place.fd).list())
    // One of the future would allow for ever what it allows once.
    guard let signed = try? PackageIndex.read(bytes, trust: trust, at: context.now()),
      signed.index.issued <= context.now() + 86_400
    else { return nil }
    let seen = try SeenIndexes(of: "network", by: signed.signer, access)
    guard try seen.isRecent(signed.index) else { return nil }
    try seen.note(signed.index)
    return signed
  }

  /// Whether the app that the server offers may be no later version than this machine has, or had last.
  ///
  /// It may be the same version, signed again, or an earlier one to which the app's team has it go back.
  /// Throws if the version is earlier and the team does not say so.
  func allowsDowngrade(to offered: NetworkApps.Offered, from before: AppDescription?) throws -> Bool {
    let known = before.map { Known($0) } ?? removed[offered.identifier.lowercased()]
    guard let known, !(known.order < offered.order) else { return false }
    guard offered.order == known.order || allows(offered, from: known) else {
      throw CommandFailure(
        .failed,
        "the network has version \(offered.version.sanitized), and this machine has had "
          + "\(known.version.sanitized); nothing was changed; if the app is to go back, its team must say so "
          + "with 'insula index' in the server's Applications directory")
    }
    return true
  }

  private func allows(_ offered: NetworkApps.Offered, from known: Known) -> Bool {
    guard let (index, signer) = index, index.issued > known.since, signer.team.hasSameBytes(as: known.team),
      known.root == nil || signer.chain.last?.fingerprintText == known.root
    else { return false }
    return index.apps.contains { app in
      app.identifier.lowercased() == offered.identifier.lowercased() && app.version == offered.build
        && app.release == offered.version
    }
  }

  /// Remembers an app that the network has no more: it may come again.
  func remember(_ app: AppDescription) throws {
    removed[app.identifier.lowercased()] = Known(app)
    try write()
  }

  /// Forgets an app that is there again: its own version counts from now on.
  func forget(_ identifier: String) throws {
    if removed.removeValue(forKey: identifier.lowercased()) != nil { try write() }
  }

  private func write() throws {
    let store = try access.openedStore()
    try store.state.replaceContents(of: Self.file, with: try JSONText.encode(removed), mode: 0o600)
  }

  /// Forgets all, as the machine leaves the network.
  static func removeAll(_ access: any StoreAccess) throws {
    let store = try access.openedStore()
    do throws(Errno) { try store.state.remove(file, directory: false) } catch {
      if error != .ENOENT { throw error }
    }
  }
}

extension NetworkApps.Offered {
  fileprivate var order: (AppVersion, AppVersion) { (AppVersion(build), AppVersion(version)) }
}

extension NetworkVersions.Known {
  fileprivate var order: (AppVersion, AppVersion) { (AppVersion(build), AppVersion(version)) }
}
