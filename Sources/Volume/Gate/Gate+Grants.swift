// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

// Questions about what users have granted. Each is answered by the function of Policy that is called.

extension Gate {
  /// Throws unless what was granted may still be used so.
  func authorizeUse(of node: NodeID, _ wanted: Reach) throws(Errno) {
    try decisionOnUse(of: node, wanted).enforce(reach: .revocable)
  }

  /// Whether what was granted may still be used so.
  ///
  /// During a rename an object may be found at neither its old nor its new path. So a request that seems to
  /// have lost a grant checks again under the lock of grants. The holder of that lock never waits for such
  /// requests.
  func decisionOnUse(of node: NodeID, _ wanted: Reach) -> Decision {
    let decision = decideUse(wanted, within: nodes.reach(of: node, in: scope))
    guard case .deny = decision, let user = audience.user else { return decision }
    return volume.grants.moving.withLock(of: user) {
      decideUse(wanted, within: nodes.reach(of: node, in: scope))
    }
  }

  /// Throws unless what is in the file may be changed through an open that has this access.
  func authorizeOverwriting(_ access: OpenFile.Access) throws(Errno) {
    try decideOverwriting(mayOnlyAppend: access.contains(.append)).enforce()
  }

  /// Throws if the file is one through which databases share memory, and its maps would be the view's own.
  ///
  /// Memory maps of granted files are private to the view, because only then they can be revoked. Without
  /// passthrough, all maps are private to their view.
  func refuseSharedMemory(_ node: NodeID) throws(Errno) {
    let isSharedMemory = nodes.with(node) { $0.flags.contains(.isSharedMemory) } ?? false
    try decideMapsOfOneView(isSharedMemory: isSharedMemory).enforce()
  }

  // MARK: Kept apart

  /// Throws unless something may be moved, or linked, from the one position to the other.
  func authorizeCrossing(
    from source: Reach, at sourcePosition: Position, to target: Reach, at targetPosition: Position
  ) throws(Errno) {
    try decideCrossing(
      from: source, to: target,
      isOneGrant: scope.grant(around: sourcePosition) == scope.grant(around: targetPosition)
    ).enforce()
  }

  /// Throws unless something may be moved from the one directory to the other.
  func authorizeCrossing(
    _ from: DirectoryChange.Directory, _ to: DirectoryChange.Directory
  ) throws(Errno) {
    if from.place.node == to.place.node { return }
    try authorizeCrossing(
      from: from.object.reach, at: from.position, to: to.object.reach, at: to.position)
  }

  /// The same where both are known to be of one grant, if they were granted.
  func authorizeCrossing(from source: Reach, to target: Reach) throws(Errno) {
    try decideCrossing(from: source, to: target, isOneGrant: true).enforce()
  }
}

extension Volume {
  /// Throws unless a user may grant what is in this zone.
  func authorizeChoice(in zone: Zone) throws(Errno) { try decideChoice(in: zone).enforce() }

  /// Throws unless somebody who asks the daemon, and no view, may do all of `rights` to the object.
  func authorize(
    _ rights: Rights, on object: Object, by caller: Credentials, _ isMember: (_ gid: UInt32) -> Membership
  ) throws(Errno) {
    try decide(rights, on: object, by: caller, isMember: isMember).enforce()
  }
}
