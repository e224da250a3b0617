// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The answer of the gate.
package enum Decision: Equatable, Sendable {
  case allow
  case deny(Denial)
}

/// Why something is refused.
///
/// One place maps these to errnos.
package enum Denial: Sendable {
  /// The place is sealed, as on a read-only volume.
  case sealed
  /// A rule of the place, which holds for root too.
  case place
  /// A BSD flag, which holds for root too.
  case flags
  /// The access control list.
  case list
  /// The mode bits.
  case mode
  /// Only the owner, or root, may do this.
  case ownership
  /// The directory is sticky, and neither it nor the object belongs to the one who asks.
  case sticky
}

/// Whether the one who asks is in a group.
package enum Membership: Sendable {
  case member
  case notMember
  /// It can't be told: what would be given to the group is not given, what would be denied to it is denied.
  case unknown
}
