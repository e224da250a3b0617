// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

extension Context {
  /// Opens a directory below the user's own data, in which the user's desktop looks for things.
  ///
  /// It must be the user's. For root so must be the way there, links resolved, which other programs are told:
  /// who comes from a su or sudo that keeps XDG_DATA_HOME is not to write through another user's links.
  func openOwn(_ path: String, making: Bool = false) throws(CommandFailure) -> OwnedFD {
    if making {
      var there = path
      while there != "/", (try? FD.cwd.openFollowing(there, pathOnly | O_DIRECTORY)) == nil {
        there = "/" + there.splitAtName.above
      }
      try refuseAnothers(there)
      Self.makeDirectories(path)
    }
    try refuseAnothers(path)
    do throws(Errno) {
      let opened = try FD.cwd.openFollowing(path, O_RDONLY | O_DIRECTORY)
      // What is root's nobody else can write to anyway.
      guard [uid, 0].contains(try opened.fd.status().st_uid) else { throw .EPERM }
      return opened
    } catch {
      throw CommandFailure(error, "can't open \(path.sanitized): \(error.message)")
    }
  }

  private func refuseAnothers(_ path: String) throws(CommandFailure) {
    let advice = "set HOME and XDG_DATA_HOME to your own, as 'sudo -H -u' and 'su -' do"
    try refuseSomebodyElses(path, advice: advice)
    guard uid == 0, let resolved = realPath(path) else { return }
    var way = ""
    for part in resolved.parts(between: "/") {
      way += "/" + part
      try refuseSomebodyElses(way, advice: advice)
    }
  }
}
