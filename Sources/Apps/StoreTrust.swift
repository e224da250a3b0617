// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
internal import LinuxIO
package import Store

/// The roots that a store trusts.
package enum StoreTrust {
  /// Below the store; one file for each root.
  package static let path = "keys/trust"

  /// The judge of signatures who trusts them; a store that has no such directory trusts nobody.
  package static func read(_ store: Store) throws(AppFailure) -> Trust {
    let directory: OwnedFD
    do throws(Errno) {
      let keys = try "keys".withName { (name) throws(Errno) in try store.directory.openDirectory(name) }
      directory = try "trust".withName { (name) throws(Errno) in try keys.fd.openDirectory(name) }
    } catch .ENOENT {
      return Trust(roots: [])
    } catch {
      throw .failed(doing: "open", path: "\(store.path)/\(path)", errno: error)
    }
    do throws(IdentityFailure) {
      return try TrustDirectory(directory.fd).trust()
    } catch {
      throw .trust(error)
    }
  }
}
