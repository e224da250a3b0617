// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CSQLite

/// SQLite, which the first call of one of its functions loads.
package enum SQLiteLibrary {
  /// Loads it now.
  ///
  /// A daemon does so before it gives up its rights, so that no request waits for it; and before it has
  /// others to serve, because a call without the library ends the process.
  package static func load() throws(StoreError) {
    guard let reason = csqlite_load() else { return }
    throw .libraryMissing(reason: String(cString: reason))
  }
}
