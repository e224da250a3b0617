// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
internal import Policy

/// A directory of this machine, a disk or a server in which homes are that are a part of a store.
///
/// Nobody but us makes or changes names in it, so a home stays what it is. What is not finished is made in a
/// directory beside them, one for each store.
package struct HomeSource: ~Copyable {
  private let directory: OwnedFD
  private let store: Store
  /// Where it is, for messages.
  private let path: String

  package init(_ directory: FD, path: String, for store: Store) throws(StoreError) {
    self.store = store
    self.path = path
    self.directory = try explaining("open", path) { () throws(Errno) in
      try directory.open(Name.here, O_RDONLY | O_DIRECTORY)
    }
  }

  /// Throws if others than whoever serves the store can change names in it; or, if it must be `closed`, get
  /// into it at all: past the daemon neither flags nor ACLs would hold.
  package func requireOwn(closed: Bool) throws(StoreError) {
    let status = try explaining("examine", path) { () throws(Errno) in try directory.fd.status() }
    let mask: FileMode = closed && store.description.mode == .system ? 0o077 : 0o022
    guard status.st_uid == ProcessID.user, status.permissions & mask == 0 else {
      throw .homesOfOthers(path: path)
    }
    let isReadOnly = try explaining("examine", path) { () throws(Errno) in
      try directory.fd.filesystemStatus().f_flag & Self.readOnly != 0
    }
    if isReadOnly { throw .readOnly(path: path) }
  }

  /// Corresponds to `ST_RDONLY`.
  private static let readOnly: UInt = 1

  private var homes: Homes {
    get throws(StoreError) {
      try Homes(in: directory.fd, path: path, mode: store.description.mode, workshop: try openWorkshop())
    }
  }

  /// Makes the home of an account, or what is missing of one that is there and theirs.
  package func make(_ name: String) throws(StoreError) { try homes.addOrComplete(name) }

  /// Takes a home from its place, so that it is none any more, in one step.
  package func take(_ name: String) throws(StoreError) -> TakenHome {
    let homes = try homes
    return TakenHome(homes: homes, taken: try homes.take(name), name: name)
  }

  /// Removes what was left by those who were stopped, and removed containers of homes that are no more.
  package func clearRemainders(with held: [String] = []) {
    guard let homes = try? homes else { return }
    homes.clearRemainders()
    homes.deleteHeld(held)
  }

  /// By what a walk through the tree gets into a home.
  package func target(of name: String, in source: SharedFD) throws(StoreError) -> RedirectedNames.Target {
    let root = try explaining("open the home", "\(path)/\(name)") { () throws(Errno) in
      SharedFD(try directory.fd.openDirectory(name))
    }
    let workshop = SharedFD(try openWorkshop())
    return try explaining("examine the home", "\(path)/\(name)") { () throws(Errno) in
      try RedirectedNames.Target(root: root, workshop: workshop, in: source)
    }
  }

  private func openWorkshop() throws(StoreError) -> OwnedFD {
    let own = try openOwn(Self.ownName, in: directory.fd)
    return try openOwn(store.description.uuid, in: own.fd)
  }

  /// A directory that is made if it is missing; whoever has brought the disk may have made another one.
  private func openOwn(_ name: String, in parent: FD) throws(StoreError) -> OwnedFD {
    let opened = try explaining("open", "\(path)/\(Self.ownName)") { () throws(Errno) in
      try parent.openDirectory(name, makingWith: 0o700)
    }
    let status = try explaining("examine", path) { () throws(Errno) in try opened.fd.status() }
    guard status.st_uid == ProcessID.user, status.permissions & 0o077 == 0 else {
      throw .homesOfOthers(path: "\(path)/\(Self.ownName)")
    }
    return opened
  }

  /// Of the directory beside the homes that is ours.
  package static let ownName = ".insula"
  /// In that, where the leases on containers are.
  package static let leasesName = "leases"
}

/// What was a home, and is to be removed.
package struct TakenHome: Sendable {
  fileprivate let homes: Homes
  fileprivate let taken: String
  fileprivate let name: String

  /// Deletes it, and the removed containers of it that lie beside it.
  package func remove(with held: [String]) throws(StoreError) {
    homes.deleteHeld(held)
    try homes.destroy(taken, of: name)
  }
}

extension Homes {
  /// Deletes removed containers that lie beside homes outside of the store; nobody can restore them any more.
  fileprivate func deleteHeld(_ names: [String]) {
    guard !names.isEmpty, let held = try? workshop.fd.openDirectory(StoreLayout.removedName) else { return }
    for name in names where !name.utf8.contains(UInt8(ascii: "/")) {
      try? access.removeTree(name, in: held.fd)
    }
  }
}
