// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Policy

/// What is to be thrown away of what apps can make again.
package struct PurgeRequest: Codable, Equatable, Sendable {
  /// Of these apps alone; all if there are none.
  package var apps: [AppIdentifier] = []
  /// Of this user alone; nil for all.
  package var user: UInt32?
  package var places: [PurgePlace] = PurgePlace.allCases
  /// Only until so much of the store's disk is free; nil for all of it.
  package var goal: FreeSpaceGoal?
  /// Only of apps that have not run since then, in seconds since 1970, and of what was not changed since.
  package var unusedSince: Int64?
  /// Says what would happen, and changes nothing.
  package var isDryRun = false

  package init() {}
}
