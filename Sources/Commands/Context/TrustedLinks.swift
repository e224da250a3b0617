// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// Which links lead to what an app is given.
///
/// Whoever has made a link decides where it leads, and thereby what the app gets. In the tree, apps make
/// links in their user's name, wherever they may write, and their user may have moved or copied those since:
/// nobody can tell them from the user's own. So no link in the tree is followed but root's, and for root not
/// even that; elsewhere none of another user's is.
enum TrustedLinks {
  /// Opens what a path leads to, with `O_PATH`; ELOOP if a link that is not trusted is on the way.
  static func open(_ path: String, allInTree: Bool = false) throws(Errno) -> OwnedFD {
    try PathWalk.open(path) { (step) throws(Errno) in
      guard case .link(let link, let status) = step else { return }
      guard try isTrusted(link, status, inTree: allInTree) else { throw .ELOOP }
    }
  }

  /// Where a path leads that was refused, to be named instead; nil where it leads nowhere.
  static func target(of path: String) -> String? {
    guard let found = try? FD.cwd.openFollowing(path, pathOnly), let place = try? found.fd.ownPath() else {
      return nil
    }
    return String(validating: place, as: UTF8.self)
  }

  private static func isTrusted(_ link: FD, _ status: FileStatus, inTree: Bool) throws(Errno) -> Bool {
    let kind = try link.filesystemKind()
    if inTree || kind == .fuse { return status.st_uid == 0 && ProcessID.user != 0 }
    return [0, ProcessID.user].contains(status.st_uid) || ProcessID.isUnmapped(status.st_uid)
  }
}
