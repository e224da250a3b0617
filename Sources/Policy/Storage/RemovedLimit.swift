// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// For how long a removed container can be restored, unless its room is needed before.
package struct RemovedLimit: Equatable, Sendable {
  package let days: Int

  /// With no day at all it is deleted at once.
  package static let allowed = 0...30
  package static let usual = RemovedLimit(days: 30)

  package init(days: Int) { self.days = min(max(days, Self.allowed.lowerBound), Self.allowed.upperBound) }

  /// Whether what was removed then is to be deleted now; both in seconds since 1970.
  ///
  /// After a removal that lies in the future the clock was set back, so nobody knows how long ago it was.
  package func isOver(removed: Int64, now: Int64) -> Bool {
    let age = now.subtractingReportingOverflow(removed)
    return !age.overflow && age.partialValue >= Int64(days) * 24 * 60 * 60
  }
}
