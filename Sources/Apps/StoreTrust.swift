// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
internal import LinuxIO
package import Store

/// The roots that a store trusts.
package enum StoreTrust {
  /// The judge of signatures who trusts them; a store that has none trusts nobody.
  ///
  /// What comes from the network that the machine has joined is judged by that network's own list, which
  /// counts for nothing else.
  package static func read(_ store: Store, for domain: AppDomain = .everyone) throws(AppFailure) -> Trust {
    let directory: OwnedFD?
    do throws(StoreError) {
      let isNetworks = domain == .network ? try store.joinedNetwork() != nil : false
      directory = try store.openTrust(of: isNetworks ? .network : .machine)
    } catch {
      throw .store(error)
    }
    guard let directory else { return Trust(roots: []) }
    do throws(IdentityFailure) {
      return try TrustDirectory(directory.fd).trust()
    } catch {
      throw .trust(error)
    }
  }
}
