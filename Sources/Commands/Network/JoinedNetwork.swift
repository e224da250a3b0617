// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
internal import Daemon
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Store

// A network is a directory of a server that its administrator keeps for many machines:
//
//   Applications/       signed bundles, or archives of them
//   Library/            what the machines show as /Network/Library
//   Library/Trust/      the certificates of the roots under which the network's apps are signed, *.pem
//   Users/              homes that the machines may have in /Users
//
// Joining it pins those roots: what the server says later is judged by them.

/// The network of a machine, as its administrator manages it.
struct JoinedNetwork {
  let address: ServerAddress
  let access: any StoreAccess
  private let store: Store
  /// Keeps others from changing what the machine has of it, if that is what this is for.
  private let lock: SharedFD?

  /// The one that a store has joined, or the machine's if none is named.
  init(of store: String?, _ context: Context) throws {
    let access = try AppsAccess.find(store ?? context.defaultStore, writing: false, context)
    try self.init(access, try access.openedStore(), lock: nil)
  }

  /// The one that the machine has joined, which nobody else changes meanwhile.
  init(changing access: any StoreAccess) throws {
    let store = try access.openedStore()
    try self.init(access, store, lock: try Self.lock(store))
  }

  private init(_ access: any StoreAccess, _ store: Store, lock: SharedFD?) throws {
    guard let text = try store.joinedNetwork(), let address = ServerAddress(text) else {
      throw CommandFailure(
        .failed, "this machine has not joined a network; 'insula network join URL' lets it")
    }
    (self.address, self.access, self.store, self.lock) = (address, access, store, lock)
  }

  /// One that it is about to join.
  init(joining address: ServerAddress, _ access: any StoreAccess) throws {
    let store = try access.openedStore()
    lock = try Self.lock(store)
    if let known = try store.joinedNetwork() {
      throw CommandFailure(
        .failed, "this machine has joined \(known.sanitized); 'insula network leave' comes first")
    }
    (self.address, self.access, self.store) = (address, access, store)
  }

  private static func lock(_ store: Store) throws -> SharedFD {
    guard let lock = try store.lockNetwork() else {
      throw CommandFailure(
        .busy, "another command joins, updates or leaves the network; try again when it has ended")
    }
    return SharedFD(lock)
  }

  /// The homes that it has.
  var homes: String { url("Users") }

  private func url(_ name: String) -> String {
    address.text + (address.text.ends(with: "/") || address.text.hasSuffix(":") ? "" : "/") + name
  }

  // MARK: Its Library

  private static let library = "Network/Library"

  func addLibrary(_ daemon: inout RunningDaemon) throws {
    // What somebody has left who was stopped while joining.
    try removeLibrary(&daemon, force: true)
    let wish = VolumeWish(.server(url("Library")), in: .network, name: "Library", isReadOnly: true)
    _ = try daemon.volumes(.add(wish))
  }

  /// Removes its Library, and what somebody has left who was stopped in an update.
  func removeLibrary(_ daemon: inout RunningDaemon, force: Bool) throws {
    try removeIncoming(&daemon)
    try daemon.ejectIfThere(Self.library, force: force)
  }

  // MARK: Its trust list

  private static let mostRoots = 32

  /// The roots that the network names.
  func announcedRoots(_ daemon: RunningDaemon) throws -> [Certificate] {
    let place = "\(daemon.mountPoint)/\(Self.library)/Trust"
    let directory = try access.context.openDirectory(place)
    var roots: [Certificate] = []
    for entry in try directory.fd.entries() where roots.count < Self.mostRoots {
      let name = String(decoding: entry.name, as: UTF8.self)
      guard name.hasSuffix(".pem"), !name.hasPrefix(".") else { continue }
      let root: Certificate
      do {
        root = try TrustDirectory(directory.fd).root(try directory.fd.contents(of: name, limit: 64 << 10))
      } catch {
        throw CommandFailure(
          .failed, "\(place)/\(name.sanitized) is no certificate: \(CommandFailure(error).message)")
      }
      if !roots.contains(root) { roots.append(root) }
    }
    guard !roots.isEmpty else {
      throw CommandFailure(.failed, "\(place) has no certificate (NAME.pem), so no app could be trusted")
    }
    return roots.inOrder { $0.name < $1.name }
  }

  /// Trusts these for the network's apps from now on, and notes that the machine has joined it.
  func pin(_ roots: [Certificate]) throws {
    let place = try store.beginNetworkTrust()
    do {
      for root in roots { try TrustDirectory(place.fd).add(try root.pem(), at: access.context.now()) }
      try store.join(network: address.text)
    } catch {
      try? store.leaveNetwork()
      throw error
    }
  }

  /// The fingerprints of the roots that were pinned.
  private func pinnedRoots() throws -> Set<String> {
    guard let place = try store.openTrust(of: .network) else { return [] }
    return Set(try TrustDirectory(place.fd).list().map(\.fingerprintText))
  }

  /// Knows nothing of it any more.
  func forget() throws { try store.leaveNetwork() }

  // MARK: Its apps

  var apps: NetworkApps { get throws { NetworkApps(access, roots: try pinnedRoots()) } }

  /// Makes what the machine has of it what its server has.
  func update(_ daemon: inout RunningDaemon) throws -> [NetworkApps.Outcome] {
    let apps = try apps
    let outcomes = try withDirectory("Applications", &daemon) { try apps.update(from: $0) }
    updateUsers(&daemon)
    return outcomes
  }

  // MARK: Its users

  /// Has `/Network/Users` show whose homes it has.
  private func updateUsers(_ daemon: inout RunningDaemon) {
    changeUsers(daemon) { users in
      let homes = try withDirectory("Users", &daemon) { path in
        let directory = try access.context.openDirectory(path)
        return try NetworkUsers.homes(in: directory.fd)
      }
      try users.set(homes)
    }
  }

  /// A home of it has come to this machine, or is no more.
  func noteHome(_ name: String, isThere: Bool, _ daemon: RunningDaemon) {
    changeUsers(daemon) { if isThere { try $0.add(name) } else { try $0.remove(name) } }
  }

  /// Changes `/Network/Users`; if that can't be, all else goes on.
  ///
  /// A network need not have homes, and some servers don't say what they lack.
  private func changeUsers(_ daemon: RunningDaemon, _ change: (NetworkUsers) throws -> Void) {
    do {
      try change(NetworkUsers(mountPoint: daemon.mountPoint))
    } catch {
      access.context.console.note("/Network/Users stays as it is: \(CommandFailure(error).message)")
    }
  }

  // MARK: Its directories

  /// Lends the path of one of its directories, which is there for so long.
  private func withDirectory<Result>(
    _ name: String, _ daemon: inout RunningDaemon, _ body: (_ path: String) throws -> Result
  ) throws -> Result {
    try removeIncoming(&daemon)
    let wish = VolumeWish(.server(url(name)), in: .network, name: "Incoming", isReadOnly: true)
    _ = try daemon.volumes(.add(wish))
    do {
      let result = try body("\(daemon.mountPoint)/\(Self.incoming)")
      try removeIncoming(&daemon)
      return result
    } catch {
      try? removeIncoming(&daemon)
      throw error
    }
  }

  private static let incoming = "Network/Incoming"

  private func removeIncoming(_ daemon: inout RunningDaemon) throws {
    try daemon.ejectIfThere(Self.incoming, force: true)
  }
}
