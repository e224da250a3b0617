// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Store

/// Where the sockets of running daemons lie.
package struct ControlPlace: Sendable {
  /// The directory of root's daemons, which everyone may look into.
  package static let systemDirectory = "/run/insula"
  /// The name of the socket inside the store, where a user has no runtime directory.
  static let nameInStore = "control.sock"
  static let suffix = ".sock"

  /// The directory of this user's own daemons; nil if the session gave them no place for such things.
  package let ownDirectory: String?

  /// `runtimeDirectory` is what `XDG_RUNTIME_DIR` says.
  package init(uid: UInt32, runtimeDirectory: String?) {
    if uid == 0 {
      ownDirectory = Self.systemDirectory
    } else if let runtimeDirectory, runtimeDirectory.hasPrefix("/") {
      ownDirectory = runtimeDirectory + "/insula"
    } else {
      ownDirectory = nil
    }
  }

  /// Starts to listen for a store whose lock the caller holds.
  package func listen(
    for store: Store, budget: Budget, handler: @escaping ControlServer.Handler
  ) throws(Errno) -> ListeningPlace {
    if let directory = try? openOwnDirectory() {
      let name = store.description.uuidText + Self.suffix
      let server = try ControlServer(in: directory.fd, name: name, mode: 0o666, budget: budget, handler: handler)
      return ListeningPlace(server: server, directory: directory, name: name)
    }
    let directory = try store.state.duplicated()
    let server = try ControlServer(
      in: directory.fd, name: Self.nameInStore, mode: 0o600, budget: budget, handler: handler)
    return ListeningPlace(server: server, directory: directory, name: Self.nameInStore)
  }

  /// All daemons that can be reached from here, each with how it describes itself.
  package func daemons() -> [(client: ControlClient, status: DaemonStatus)] {
    let directories = [Self.systemDirectory, ownDirectory].compactMap { $0 }
    let places = directories.first == directories.last ? Array(directories.prefix(1)) : directories
    return places.flatMap { path in
      guard let directory = try? Self.open(path), let entries = try? directory.fd.entries() else {
        return [(client: ControlClient, status: DaemonStatus)]()
      }
      return entries.compactMap { entry in
        let name = String(decoding: entry.name, as: UTF8.self)
        return name.hasSuffix(Self.suffix) ? Self.daemon(in: directory.fd, name: name) : nil
      }
    }
  }

  /// The daemon that serves a store, if it can be reached.
  package func daemon(of store: Store) -> (client: ControlClient, status: DaemonStatus)? {
    if let found = Self.daemon(in: store.state, name: Self.nameInStore) { return found }
    let uuid = store.description.uuidText
    return daemons().first { $0.status.uuid == uuid }
  }

  private static func daemon(
    in directory: FD, name: String
  ) -> (client: ControlClient, status: DaemonStatus)? {
    guard let client = try? ControlClient(in: directory, name: name),
      let reply = try? client.ask(ControlRequest(.status), milliseconds: 5000),
      let status = reply.status
    else { return nil }
    return (client, status)
  }

  /// Opens, and makes if need be, the directory for our own sockets; it must be ours and nobody else's to write in.
  private func openOwnDirectory() throws(Errno) -> OwnedFD {
    guard let path = ownDirectory else { throw .ENOENT }
    try path.withName { (name) throws(Errno) in
      do throws(Errno) {
        try FD.cwd.makeDirectory(name, mode: 0o755)
        // Whatever the umask.
        let made = try FD.cwd.open(name, O_RDONLY | O_DIRECTORY)
        try made.fd.changeMode(0o755)
      } catch {
        guard error == .EEXIST else { throw error }
      }
    }
    let directory = try Self.open(path)
    let status = try directory.fd.status()
    guard status.st_uid == ProcessID.user, status.permissions & 0o022 == 0 else { throw .EACCES }
    return directory
  }

  private static func open(_ path: String) throws(Errno) -> OwnedFD {
    try FD.cwd.open(path, O_RDONLY | O_DIRECTORY)
  }
}

/// A control server, and the name it listens under.
package final class ListeningPlace: Sendable {
  package let server: ControlServer
  private let directory: OwnedFD
  private let name: String

  init(server: ControlServer, directory: consuming OwnedFD, name: String) {
    self.server = server
    self.directory = directory
    self.name = name
  }

  /// Stops the server and takes its name away.
  package func close() {
    server.stop()
    try? directory.fd.remove(name, directory: false)
  }
}
