// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// Where the socket of an app is made, and where the app finds it.
package enum AppSocket {
  package static let name = "app.sock"
  /// The directory in the sandbox.
  package static let directory = "/run/insula"
  package static let path = directory + "/" + name
  /// The variable that names it to programs.
  package static let variable = "INSULA_SOCKET"

  /// Makes a directory in memory with a socket in it that one user can connect to: the mount of that
  /// directory, which has no place yet, and who listens.
  ///
  /// For root: nobody else gets hold of the listener, who could make the daemon wait with it.
  static func make(for user: UInt32, _ group: UInt32) throws(Errno) -> (mount: SharedFD, listener: SharedFD) {
    let options = [("source", "insula"), ("mode", "0755"), ("size", "65536"), ("nr_inodes", "8")]
    let mount = try DetachedMount.make(
      type: "tmpfs", options: options, [.noDevices, .noSetUserID, .noPrograms])
    let listener = try LocalSocket.listen(in: mount.fd, name: name, mode: 0o600, takesDescriptors: false)
    let socket = try name.withName { (name) throws(Errno) in try mount.fd.child(name) }
    try socket.fd.changeOwner(uid: user, gid: group)
    return (SharedFD(mount), SharedFD(listener))
  }

  /// Makes the socket in a directory of the caller's own, for a daemon that is the caller's too.
  package static func listen(in directory: FD) throws(Errno) -> OwnedFD {
    try LocalSocket.listen(in: directory, name: name, mode: 0o600, takesDescriptors: false)
  }
}
