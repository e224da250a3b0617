// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO

extension Store {
  /// Opens the directory of the roots that are trusted here: only what descends from one of them is
  /// installed.
  ///
  /// It is in `keys`, which is its owner's alone, and no business of the daemon's, so it is read and changed
  /// whether the store is mounted or not. It comes into being with the first root; a store that has none
  /// trusts nobody, and there is nothing to open: nil. `TrustDirectory` in Bundles works in it.
  package func openTrust() throws(StoreError) -> OwnedFD? {
    try withTrust { (keys, name) throws(Errno) in
      do throws(Errno) { return try keys.openDirectory(name) } catch .ENOENT { return nil }
    }
  }

  /// The same, made if it is missing.
  package func makeTrust() throws(StoreError) -> OwnedFD {
    try withTrust { (keys, name) throws(Errno) in
      try keys.openDirectory(name, makingWith: 0o700)
    }
  }

  private func withTrust<Result: ~Copyable>(
    _ body: (FD, String) throws(Errno) -> Result
  ) throws(StoreError) -> Result {
    try explaining("open", "\(path)/\(StoreLayout.trustPath)") { () throws(Errno) in
      try directory.withParent(of: StoreLayout.trustPath, body)
    }
  }
}
