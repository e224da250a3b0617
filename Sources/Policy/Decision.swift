// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The answer of the gate.
package enum Decision: Equatable, Sendable {
  case allow
  case deny(Denial)
}

/// Why a request is refused.
///
/// The gate maps each reason to an errno.
package enum Denial: UInt8, Sendable, CaseIterable {
  /// The location is in a read-only region.
  case readOnly
  /// A location rule, which applies to root too.
  case place
  /// A BSD flag, which applies to root too.
  case flags
  /// The ACL.
  case acl
  /// The mode bits.
  case mode
  /// Only the owner, or root, may do this.
  case ownership
  /// The directory is sticky, and the caller owns neither it nor the object.
  case sticky
  /// The open may only append.
  case appendOnly
  /// The operation would cross the boundary of a grant.
  ///
  /// A grant is separate, like a filesystem of its own.
  case boundary
  /// The program belongs to a sandboxed app, and would run outside of its view.
  case sandbox
  /// The user of the app has not consented, or not yet.
  case consent
}

/// Whether the caller is in a group.
package enum Membership: Sendable {
  case member
  case notMember
  /// Unknown.
  ///
  /// Permit entries for the group then do not apply to the caller, and deny entries do.
  case unknown
}
