// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import CLinux
internal import Glibc
internal import LinuxIO
internal import Store

// What a user keeps for insula: identities, and roots that they trust.

extension Context {
  /// `~/.config/insula`, or where XDG has it.
  var configuration: String {
    if let place = environment["XDG_CONFIG_HOME"], place.hasPrefix("/") { return place + "/insula" }
    return home + "/.config/insula"
  }

  /// The user's identities, in a directory that is theirs alone.
  ///
  /// Nil where there is none yet, and none is to be made.
  func openIdentities(making: Bool) throws(CommandFailure) -> OwnedFD? {
    try openConfiguration("identities", making: making)
  }

  /// The roots that count: the user's, or those of a store.
  ///
  /// Nil where there are none yet, and no place for them is to be made.
  func openTrust(ofStore store: String?, making: Bool) throws -> OwnedFD? {
    guard let store else { return try openConfiguration("trust", making: making) }
    return try Store(opening: absolute(store), .inspect).openTrust(making: making)
  }

  /// The judge of signatures who goes by those roots.
  func trust(ofStore store: String?) throws -> Trust {
    guard let place = try openTrust(ofStore: store, making: false) else { return Trust(roots: []) }
    return try TrustDirectory(place.fd).trust()
  }

  private func openConfiguration(_ name: String, making: Bool) throws(CommandFailure) -> OwnedFD? {
    let path = "\(configuration)/\(name)"
    do throws(Errno) {
      if making { Self.makeDirectories(path) }
      let opened = try path.withName { (name) throws(Errno) in
        try FD.cwd.openFollowing(name, O_RDONLY | O_DIRECTORY)
      }
      let status = try opened.fd.status()
      if status.st_mode & 0o022 == 0, status.st_uid == uid { return opened }
    } catch {
      if error == .ENOENT, !making { return nil }
      throw CommandFailure(
        error == .EACCES || error == .EROFS ? .notPermitted : .failed,
        "can't open \(path): \(error.message); XDG_CONFIG_HOME names another place")
    }
    throw CommandFailure(
      .notPermitted,
      "\(path) can be written by others than you; make it yours alone (chown, chmod 700), and look through it"
    )
  }

  /// Makes what is missing on the way to a directory, and it: all for its owner only.
  static func makeDirectories(_ path: String) {
    var made = ""
    for part in path.split(separator: "/") {
      made += "/" + part
      // Where that can't be, opening what is missing says why.
      try? made.withName { (name) throws(Errno) in try FD.cwd.makeDirectory(name, mode: 0o700) }
    }
  }
}
