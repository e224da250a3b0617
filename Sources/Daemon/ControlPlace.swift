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
  private let directories: [String]

  /// `runtimeDirectory` is what `XDG_RUNTIME_DIR` says.
  package init(uid: UInt32, runtimeDirectory: String?) {
    if uid == 0 {
      ownDirectory = Self.systemDirectory
    } else if let runtimeDirectory, runtimeDirectory.begins(with: "/") {
      ownDirectory = runtimeDirectory + "/insula"
    } else {
      ownDirectory = nil
    }
    directories =
      ownDirectory == Self.systemDirectory
      ? [Self.systemDirectory] : [Self.systemDirectory, ownDirectory].compactMap { $0 }
  }

  /// For tests: one directory, and none of the machine's.
  init(only directory: String) {
    ownDirectory = directory
    directories = [directory]
  }

  /// Starts to listen for a store whose lock the caller holds.
  package func listen(
    for store: Store, budget: Budget, kept: KeptState? = nil, handler: @escaping ControlServer.Handler
  ) throws(Errno) -> ListeningPlace {
    if let directory = ownPlace() {
      let name = Self.name(of: try StoreIdentity(of: store.directory))
      let server = try ControlServer(
        in: directory.fd, name: name, mode: 0o666, budget: budget, kept: kept, handler: handler)
      return ListeningPlace(server: server, directory: directory, name: name)
    }
    let directory = try store.state.duplicated()
    let server = try ControlServer(
      in: directory.fd, name: Self.nameInStore, mode: 0o600, budget: budget, kept: kept, handler: handler)
    return ListeningPlace(server: server, directory: directory, name: Self.nameInStore)
  }

  /// Where root's daemon has the socket of a store, and what else it needs a name for.
  static func directory(of store: Store) throws(Errno) -> OwnedFD {
    if let own = try? ControlPlace(uid: 0, runtimeDirectory: nil).openOwnDirectory() { return own }
    return try store.state.duplicated()
  }

  /// The socket of a store: no other store can have that name, not even a copy of it.
  static func name(of store: StoreIdentity) -> String { store.text + suffix }

  /// The directory for our own sockets, if there is one that will do.
  private func ownPlace() -> OwnedFD? {
    guard let path = ownDirectory else { return nil }
    do throws(Errno) {
      return try openOwnDirectory()
    } catch {
      DaemonLog.write(
        "can't create the control socket in \(path) (\(error.message)); "
          + "the directory must belong to the daemon's user, and nobody else may write to "
          + "it; the socket is in the store instead, where only its owner can reach it")
      return nil
    }
  }

  /// All daemons that can be reached from here, each with how it describes itself, up to the one that is
  /// sought.
  ///
  /// All are asked at once: one that does not answer, since it was stopped or its disk hangs, delays only who
  /// seeks what no other one is. One that does not even take the question, as what is left of a daemon that
  /// was killed, delays them for a moment, unless `isThere` says that there is one to wait for.
  package func daemons(
    isThere: Bool = false, patience: Int32 = Self.patience,
    upTo isSought: (DaemonStatus) -> Bool = { _ in false }
  ) -> [(client: ControlClient, status: DaemonStatus)] {
    var asked = directories.flatMap(Self.askAll)
    var found: [(client: ControlClient, status: DaemonStatus)] = []
    let begin = monotonicNanoseconds()
    let end = begin + UInt64(patience) * 1_000_000
    let endOfTaking = isThere ? end : begin + UInt64(Self.patienceForTaking) * 1_000_000
    while !asked.isEmpty {
      let now = monotonicNanoseconds()
      guard now < end else { break }
      if now >= endOfTaking {
        asked.removeAll { !$0.hasBeenHeard }
        if asked.isEmpty { break }
      }
      // Rounded up: a wait of nothing would only look.
      let left = Int32(((now < endOfTaking ? endOfTaking : end) - now) / 1_000_000) + 1
      guard let ready = try? waitForAny(of: asked.map(\.fd), milliseconds: left) else { break }
      guard let index = ready.firstIndex(of: true) else { continue }
      guard let answer = Self.answer(of: asked.remove(at: index), milliseconds: left) else { continue }
      found.append(answer)
      if isSought(answer.status) { break }
    }
    return found
  }

  /// How long a daemon may take to say who it is.
  package static let patience: Int32 = 5000
  /// How long it may take to read the question.
  private static let patienceForTaking = 1000

  /// Asks all that listen in a directory who they are.
  private static func askAll(in path: String) -> [ControlClient] {
    guard let directory = try? open(path), let entries = try? directory.fd.entries() else { return [] }
    return entries.compactMap { entry in
      let name = String(decoding: entry.name, as: UTF8.self)
      guard name.hasSuffix(suffix), let client = try? ControlClient(in: directory.fd, name: name) else {
        return nil
      }
      do throws(Errno) { try client.send(.status) } catch { return nil }
      return client
    }
  }

  /// What one that was asked says; if it was replaced by another one meanwhile, that is asked.
  private static func answer(
    of client: ControlClient, milliseconds: Int32
  ) -> (client: ControlClient, status: DaemonStatus)? {
    do throws(Errno) {
      let reply = try client.awaitReply(milliseconds: milliseconds)
      if case .status(let status) = reply { return (client, status) }
      guard reply.isCrowded else { return nil }
    } catch {
      guard error == .ECONNABORTED else { return nil }
    }
    return (try? client.again()).flatMap { ask($0, milliseconds: milliseconds) }
  }

  /// Asks one that listens who it is, or who has replaced it.
  private static func ask(
    _ client: ControlClient, milliseconds: Int32
  ) -> (client: ControlClient, status: DaemonStatus)? {
    guard let answer = try? client.askInTurn(.status, milliseconds: milliseconds),
      case .status(let status) = answer.reply
    else { return nil }
    return (answer.client, status)
  }

  /// The daemon that serves the store which is this directory; what answers under its name must say that it
  /// is.
  package func daemon(of identity: StoreIdentity) -> (client: ControlClient, status: DaemonStatus)? {
    for path in directories {
      guard let directory = try? Self.open(path),
        let found = Self.daemon(in: directory.fd, name: Self.name(of: identity)),
        found.status.identity == identity
      else { continue }
      return found
    }
    return nil
  }

  /// The daemon that listens in the store itself.
  package func daemon(in store: Store) -> (client: ControlClient, status: DaemonStatus)? {
    guard let found = Self.daemon(in: store.state, name: Self.nameInStore) else { return nil }
    // One of an earlier version does not say which store is its own.
    return found.status.identity == nil || found.status.identity == store.identity ? found : nil
  }

  private static func daemon(
    in directory: FD, name: String
  ) -> (client: ControlClient, status: DaemonStatus)? {
    guard let client = try? ControlClient(in: directory, name: name) else { return nil }
    return ask(client, milliseconds: patience)
  }

  /// Opens, and makes if need be, the directory for our own sockets; it must be ours and nobody else's to
  /// write in.
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
    guard try directory.fd.status().st_uid == ProcessID.user else { throw .EACCES }
    return directory
  }

  /// Opens a directory of sockets; nobody but root and ourselves may be able to put one there.
  private static func open(_ path: String) throws(Errno) -> OwnedFD {
    let directory = try FD.cwd.open(path, O_RDONLY | O_DIRECTORY)
    let status = try directory.fd.status()
    guard [0, ProcessID.user].contains(status.st_uid), status.permissions & 0o022 == 0 else { throw .EACCES }
    return directory
  }
}

/// A control server, and the name it listens under.
package final class ListeningPlace: Sendable {
  package let server: ControlServer
  private let directory: OwnedFD
  private let name: String
  private let inode: UInt64?

  init(server: ControlServer, directory: consuming OwnedFD, name: String) {
    self.server = server
    self.name = name
    inode = (try? directory.fd.status(of: name)).map { UInt64($0.st_ino) }
    self.directory = directory
  }

  /// Stops the server and takes its name away, unless another socket has that name by now.
  package func close() {
    server.stop()
    guard let inode, let status = try? directory.fd.status(of: name), UInt64(status.st_ino) == inode else {
      return
    }
    try? directory.fd.remove(name, directory: false)
  }
}
