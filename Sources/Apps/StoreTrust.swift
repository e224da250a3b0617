// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
internal import LinuxIO
package import Store

/// The roots that a store trusts.
package enum StoreTrust {
  /// The judge of signatures who trusts them; a store that has none trusts nobody.
  package static func read(_ store: Store) throws(AppFailure) -> Trust {
    let directory: OwnedFD?
    do throws(StoreError) { directory = try store.openTrust() } catch { throw .store(error) }
    guard let directory else { return Trust(roots: []) }
    do throws(IdentityFailure) {
      return try TrustDirectory(directory.fd).trust()
    } catch {
      throw .trust(error)
    }
  }
}
