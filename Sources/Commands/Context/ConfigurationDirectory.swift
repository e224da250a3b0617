// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

// What a user keeps for insula: identities, and roots that they trust.

extension Context {
  /// `~/.config/insula`, or where XDG has it.
  var configurationDirectory: String {
    if let place = environment["XDG_CONFIG_HOME"], place.begins(with: "/") { return place + "/insula" }
    return home + "/.config/insula"
  }

  /// The file that names servers of the network: the machine's, and the user's own for their own store.
  var serversFile: String {
    let place = isRoot ? "/" + machineConfiguration.splitAtName.above : configurationDirectory
    return place + "/network.conf"
  }

  /// The user's identities, in a directory that is theirs alone; nil where there is none yet.
  func openIdentities() throws(CommandFailure) -> OwnedFD? { try openConfiguration("identities") }

  /// The same, made if it is missing.
  func makeIdentities() throws(CommandFailure) -> OwnedFD { try makeConfiguration("identities") }

  /// What is known of sources of apps, in a directory that is the user's alone; made if it is missing.
  func makeSources() throws(CommandFailure) -> OwnedFD { try makeConfiguration("sources") }

  /// The roots that count: the user's, or those of a store; nil where there are none yet.
  func openTrust(ofStore store: String?) throws -> OwnedFD? {
    guard let store else { return try openConfiguration("trust") }
    return try self.store(store).openTrust()
  }

  /// The same of a store that is open already, made if it is missing.
  func makeTrust(of store: Store?) throws -> OwnedFD {
    guard let store else { return try makeConfiguration("trust") }
    return try store.makeTrust()
  }

  /// The store that someone has named, be it by its mount point.
  func store(_ named: String) throws -> Store {
    try DaemonSearch(self).store(at: absolute(named))
  }

  /// The judge of signatures who goes by those roots.
  func trust(ofStore store: String?) throws -> Trust {
    guard let place = try openTrust(ofStore: store) else { return Trust(roots: []) }
    return try TrustDirectory(place.fd).trust()
  }

  private func makeConfiguration(_ name: String) throws(CommandFailure) -> OwnedFD {
    let path = "\(configurationDirectory)/\(name)"
    try refuseSomebodyElses(
      environment["XDG_CONFIG_HOME"].flatMap { $0.begins(with: "/") ? $0 : nil } ?? home)
    Self.makeDirectories(path)
    guard let made = try openConfiguration(name) else {
      throw CommandFailure(.failed, "can't create \(path); set XDG_CONFIG_HOME to use another directory")
    }
    return made
  }

  /// Throws if what is made there would be in another user's hands, who can put something else in its place.
  ///
  /// Root comes there by a su or sudo that keeps HOME.
  func refuseSomebodyElses(
    _ place: String, advice: String = "set HOME to your own home, as 'sudo -H' does"
  ) throws(CommandFailure) {
    guard let directory = try? FD.cwd.openFollowing(place, pathOnly | O_DIRECTORY),
      let owner = try? directory.fd.status().st_uid, owner != uid, owner != 0
    else { return }
    let name = Account.numbered(owner)?.name ?? "uid \(owner)"
    throw CommandFailure(
      .notPermitted,
      "\(place.sanitized) is \(name)'s, and what is kept there would be in that user's hands; \(advice)")
  }

  private func openConfiguration(_ name: String) throws(CommandFailure) -> OwnedFD? {
    let path = "\(configurationDirectory)/\(name)"
    do throws(Errno) {
      let opened = try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
      let status = try opened.fd.status()
      if status.st_mode & 0o022 == 0, status.st_uid == uid { return opened }
    } catch {
      if error == .ENOENT { return nil }
      throw CommandFailure(error, "can't open \(path): \(error.message)")
    }
    throw CommandFailure(
      .notPermitted,
      "other users can write to \(path); restrict it to yourself (chown, chmod 700), and check its contents"
    )
  }

  /// Makes what is missing on the way to a directory, and it: all for its owner only.
  static func makeDirectories(_ path: String) {
    var made = ""
    for part in path.parts(between: "/") {
      made += "/" + part
      // Where that can't be, opening what is missing says why.
      try? FD.cwd.makeDirectory(made, mode: 0o700)
    }
  }
}
