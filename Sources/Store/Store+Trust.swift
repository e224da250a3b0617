// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// Whose list of trusted roots in a store it is.
package enum TrustList: Sendable {
  /// The machine's: for all that its administrators and users install.
  case machine
  /// That of the network that the machine has joined: for the network's apps, and for nothing else.
  case network

  fileprivate var path: String {
    switch self {
    case .machine: StoreLayout.trustPath
    case .network: "keys/network"
    }
  }
}

extension Store {
  /// Opens the directory of the roots that are trusted here: only what descends from one of them is
  /// installed.
  ///
  /// It is in `keys`, which is its owner's alone, and no business of the daemon's, so it is read and changed
  /// whether the store is mounted or not. It comes into being with the first root; a store that has none
  /// trusts nobody, and there is nothing to open: nil. `TrustDirectory` in Bundles works in it.
  ///
  /// Without an address the machine has joined no network, and what lies in the network's list was left by a
  /// command that was stopped: nobody has confirmed it for the network that is joined next.
  package func openTrust(of list: TrustList = .machine) throws(StoreError) -> OwnedFD? {
    try withTrust(list) { (keys, name) throws(Errno) in
      do throws(Errno) {
        let place = try keys.openDirectory(name)
        if case .network = list, !place.fd.has(Self.addressName) { return nil }
        return place
      } catch .ENOENT {
        return nil
      }
    }
  }

  /// The same, made if it is missing.
  package func makeTrust(of list: TrustList = .machine) throws(StoreError) -> OwnedFD {
    try withTrust(list) { (keys, name) throws(Errno) in
      try keys.openDirectory(name, makingWith: 0o700)
    }
  }

  private func withTrust<Result: ~Copyable>(
    _ list: TrustList, _ body: (FD, String) throws(Errno) -> Result
  ) throws(StoreError) -> Result {
    try explaining("open", "\(path)/\(list.path)") { () throws(Errno) in
      try directory.withParent(of: list.path, body)
    }
  }
}

// The network that a machine has joined: where it is, in a file beside the roots of its trust list.

extension Store {
  private static let addressName = "address"
  private static let addressLimit = 4096

  /// Keeps others from joining, updating and leaving a network for as long as this is open; nil if somebody
  /// does so already.
  package func lockNetwork() throws(StoreError) -> OwnedFD? {
    try withTrust(.network) { (keys, _) throws(Errno) in
      let keys = try keys.reopened(O_RDONLY | O_DIRECTORY)
      guard flock(keys.fd.raw, LOCK_EX | LOCK_NB) == 0 else { return nil }
      return keys
    }
  }

  /// The address of the network that the store's machine has joined.
  package func joinedNetwork() throws(StoreError) -> String? {
    guard let place = try openTrust(of: .network) else { return nil }
    return try explaining("read", "\(path)/keys/network/\(Self.addressName)") { () throws(Errno) in
      do throws(Errno) {
        let bytes = try place.fd.contents(of: Self.addressName, limit: Self.addressLimit)
        return String(decoding: bytes, as: UTF8.self)
      } catch .ENOENT {
        return nil
      }
    }
  }

  /// Begins the list of the network that is about to be joined: nothing is in it that was left of another.
  package func beginNetworkTrust() throws(StoreError) -> OwnedFD {
    try leaveNetwork()
    return try makeTrust(of: .network)
  }

  /// Notes that it has joined one; the roots are there by then.
  package func join(network address: String) throws(StoreError) {
    let place = try makeTrust(of: .network)
    try explaining("write", "\(path)/keys/network/\(Self.addressName)") { () throws(Errno) in
      try place.fd.replaceContents(of: Self.addressName, with: Array(address.utf8), mode: 0o600)
    }
  }

  /// Forgets the network and its roots.
  package func leaveNetwork() throws(StoreError) {
    try explaining("remove", "\(path)/keys/network") { () throws(Errno) in
      try directory.withParent(of: TrustList.network.path) { (keys, name) throws(Errno) in
        do throws(Errno) { try keys.removeTree(name) } catch .ENOENT {}
      }
    }
  }
}
