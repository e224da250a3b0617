// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Locks.

extension View {
  package func conflictingLock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, wanted: LockRange
  ) throws(Errno) -> LockRange {
    guard let object = nodes.number(of: node) else { throw .ESTALE }
    let holder = LockHolder(view: number, owner: owner)
    if let conflict = volume.locks.conflict(object, with: wanted, by: holder) { return conflict }
    return LockRange(kind: .none, first: wanted.first, last: wanted.last, pid: 0)
  }

  package func setLock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, to range: LockRange, parking: ParkingPlace?,
    by caller: Caller
  ) throws(Errno) -> LockOutcome {
    try setLock(node, handle, owner, range, .posix, parking, caller)
  }

  package func setFlock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, to kind: LockRange.Kind, parking: ParkingPlace?,
    by caller: Caller
  ) throws(Errno) -> LockOutcome {
    try setLock(node, handle, owner, .whole(kind), .flock, parking, caller)
  }

  package func abandoned(_ reply: ParkedReply) { volume.locks.abandon(reply) }

  private func setLock(
    _ node: NodeID, _ handle: HandleID, _ owner: LockOwner, _ range: LockRange, _ style: LockTable.Style,
    _ parking: ParkingPlace?, _ caller: Caller
  ) throws(Errno) -> LockOutcome {
    guard let object = nodes.number(of: node) else { throw .ESTALE }
    let holder = LockHolder(view: number, owner: owner)
    let lock = HeldLock(holder: holder, handle: handle, range: range, payer: payer(caller))
    let outcome = try volume.locks.set(lock, on: object, style, parking: parking)
    // Checked when the lock is set: a revocation meanwhile releases locks that were set before.
    if range.kind != .none, granted.hasLost(node, handle) {
      volume.locks.releaseAll(of: number, on: object)
      // Nothing of it is in the view any more.
      if case .done = outcome { try decideUse(.read, within: .nothing).enforce() }
    }
    return outcome
  }
}
