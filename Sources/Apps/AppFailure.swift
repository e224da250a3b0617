// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Bundles
package import LinuxIO
package import Store

/// Why an app is not installed, updated or removed.
///
/// Nothing has changed then, but with ``containersNotMade(identifier:_:)``.
package enum AppFailure: Error, Equatable, Sendable {
  /// It is not what its signature says, or nobody who is trusted has signed it: all that is wrong, the first
  /// first; never empty.
  case refused(bundle: String, [Bundles.Finding])
  case notCopied(bundle: String, TreeCopyFailure)
  /// The store or its registry.
  case store(StoreError)
  /// The trusted roots can't be read.
  case trust(IdentityFailure)

  case notAllowed(doing: String, path: String)
  case badName(name: String, reason: String)
  case inTheWay(path: String, what: String)
  case twin(path: String, other: String)
  case alreadyInstalled(identifier: String, path: String)
  case otherApp(path: String, identifier: String)
  case notInstalled(identifier: String, domain: String)
  case otherIdentifier(installed: String, new: String)
  case otherTeam(identifier: String, installed: String, new: String)
  case sameVersion(identifier: String, version: String)
  case olderVersion(identifier: String, installed: String, new: String)
  case badEntitlement(key: String, reason: String)
  case groupOfOtherTeam(group: String, app: String, team: String)
  /// Another installation of the same app, or to the same place, has not ended.
  case busy(identifier: String)
  /// It, or another app of a group, runs on another machine for the same user, as far as is known on which.
  case runsElsewhere(identifier: String, sharing: String?, host: String?)
  /// It runs.
  case running(identifier: String, [String])
  /// It runs, and is to be updated.
  case runningOldVersion(identifier: String, [String])
  /// No update of it waits.
  case nothingWaits(identifier: String)
  case noSpace(needed: Int64, free: Int64, path: String)
  case cancelled
  /// The app is installed, updated or removed, and only its containers are not as they should be.
  case containersNotMade(identifier: String, StoreError)
  case failed(doing: String, path: String, errno: Errno)
}
