// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Store

/// Where the sockets of apps lie that root's daemon serves: a directory for each view, beside the control
/// socket.
///
/// An app is given a mount of its view's directory, in which nobody can make anything. No filesystem is made
/// for that: a machine has so many of them, and whoever keeps the mount when its view has ended would keep
/// one. So they have an empty directory.
struct AppSocketPlaces: Sendable {
  /// The directory of all has this name, and nobody else gets into it.
  private let name: String
  private let above: SharedFD

  /// Those of a store of root's; what a daemon has left that was killed is removed unless its views go on.
  init?(of store: Store, viewsGoOn: Bool) {
    guard store.description.mode == .system, let identity = try? StoreIdentity(of: store.directory) else {
      return nil
    }
    do throws(Errno) {
      above = SharedFD(try ControlPlace.directory(of: store))
    } catch {
      DaemonLog.write("apps get no sockets: \(error.message)")
      return nil
    }
    name = identity.text + ".apps"
    if !viewsGoOn { removeAll() }
  }

  /// Makes the directory of a view with a socket in it that one user can connect to: the mount of that
  /// directory, which has no place yet, and who listens.
  ///
  /// Nobody else gets hold of the listener, who could make the daemon wait with it.
  func make(
    view: UInt32, for user: UInt32, _ group: UInt32
  ) throws(Errno) -> (mount: SharedFD, listener: SharedFD) {
    let all = try above.use { (above) throws(Errno) in try above.openDirectory(name, makingWith: 0o700) }
    let own = try all.fd.openDirectory("\(view)", makingWith: 0o755)
    // Of an answer that was lost, or of a view that had the number before.
    do throws(Errno) { try own.fd.remove(AppSocket.name, directory: false) } catch .ENOENT {}
    let listener = try LocalSocket.listen(
      in: own.fd, name: AppSocket.name, mode: 0o600, takesDescriptors: false)
    let socket = try AppSocket.name.withName { (name) throws(Errno) in try own.fd.child(name) }
    try socket.fd.changeOwner(uid: user, gid: group)
    let limits: DetachedMount.Limits = [.readOnly, .noDevices, .noSetUserID, .noPrograms]
    let mount = try DetachedMount.copy(of: own.fd, adding: limits)
    return (SharedFD(mount), SharedFD(listener))
  }

  /// The view has ended.
  func remove(view: UInt32) {
    try? above.use { (above) throws(Errno) in
      let all = try above.openDirectory(name)
      try all.fd.removeTree("\(view)")
    }
  }

  func removeAll() { try? above.use { (above) throws(Errno) in try above.removeTree(name) } }
}
