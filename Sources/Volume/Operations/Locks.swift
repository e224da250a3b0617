// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Locks and the flags of lsattr.

extension View {
  package func conflictingLock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, wanted: LockRange
  ) throws(Errno) -> LockRange {
    guard let object = lockedObject(node) else { throw .ESTALE }
    let holder = LockHolder(view: number, owner: owner)
    if let conflict = volume.locks.conflict(object, with: wanted, by: holder) { return conflict }
    return LockRange(kind: .none, first: wanted.first, last: wanted.last, pid: 0)
  }

  package func setLock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, to range: LockRange, parking: ParkingPlace?
  ) throws(Errno) -> LockOutcome {
    try setLock(node, handle, owner, range, .posix, parking)
  }

  package func setFlock(
    _ node: NodeID, handle: HandleID, owner: LockOwner, to kind: LockRange.Kind, parking: ParkingPlace?
  ) throws(Errno) -> LockOutcome {
    try setLock(node, handle, owner, .whole(kind), .flock, parking)
  }

  package func abandoned(_ reply: ParkedReply) { volume.locks.abandon(reply) }

  private func setLock(
    _ node: NodeID, _ handle: HandleID, _ owner: LockOwner, _ range: LockRange, _ style: LockTable.Style,
    _ parking: ParkingPlace?
  ) throws(Errno) -> LockOutcome {
    guard let object = lockedObject(node) else { throw .ESTALE }
    let lock = HeldLock(holder: LockHolder(view: number, owner: owner), handle: handle, range: range)
    return try volume.locks.set(lock, on: object, style, parking: parking)
  }

  package func inodeFlags(of node: NodeID, by caller: Caller) throws(Errno) -> UInt32 {
    try withOpened(node) { (file) throws(Errno) in try file.inodeFlags() }
  }

  package func setInodeFlags(of node: NodeID, to flags: UInt32, by caller: Caller) throws(Errno) {
    let object = try nodes.pin(node)
    let status = try object.fd.status()
    try authorize(.writeSecurity, on: status, zone: object.zone, by: caller)
    try withOpened(node) { (file) throws(Errno) in
      // The kernel has asked for CAP_LINUX_IMMUTABLE where a caller changes these two; nobody but root gets past here.
      let rootsOwn: UInt32 = 0x10 | 0x20
      let changed = (try file.inodeFlags()) ^ flags
      if volume.settings.isSystem, caller.uid != 0, changed & rootsOwn != 0 { throw .EPERM }
      try file.setInodeFlags(flags)
    }
  }

  private func withOpened<Result>(_ node: NodeID, _ body: (FD) throws(Errno) -> Result) throws(Errno)
    -> Result
  {
    let object = try nodes.pin(node)
    let file = try nodes.openWithRoom { () throws(Errno) in try object.fd.reopened(O_RDONLY | O_NONBLOCK) }
    return try body(file.fd)
  }
}
