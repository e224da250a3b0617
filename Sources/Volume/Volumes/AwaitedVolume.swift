// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Store

/// A volume that is known and not there: it is mounted when somebody looks for it.
package struct AwaitedVolume: Sendable {
  /// It has no number yet if it comes into being for whoever looks.
  package let record: VolumeRecord
  /// The directory in which it would have its name.
  let place: ObjectNumber
  /// Whether that directory lists it.
  let isAnnounced: Bool

  /// Nil where the directory is missing.
  package init?(_ record: VolumeRecord, in tree: FD, isAnnounced: Bool) {
    guard let place = AttachedVolumes.number(of: record.place, in: tree) else { return nil }
    self.record = record
    self.place = place
    self.isAnnounced = isAnnounced
  }

  /// Whether it could be there for a user.
  func isVisible(to user: UInt32) -> Bool { record.isVisible(to: user) }
}
