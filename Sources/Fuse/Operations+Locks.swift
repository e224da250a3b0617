// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc
internal import LinuxIO

// Callbacks that deal with locks. One that must wait is parked, so that it holds no thread.

func addLockOperations(_ table: inout fuse_lowlevel_ops) {
  table.getlk = { request, node, info, lock in
    serve(request) { (files, _) throws(Errno) in
      guard let info, let lock else { throw .EINVAL }
      return try files.conflictingLock(
        NodeID(node), handle: HandleID(info.pointee.fh), owner: LockOwner(info.pointee.lock_owner),
        wanted: try LockRange(lock.pointee))
    } _: { request, _, conflict in
      var answer = conflict.record
      fuse_reply_lock(request, &answer)
    }
  }
  table.setlk = { request, node, info, lock, sleep in
    serveLock(request, sleep: sleep != 0) { (files, caller, parking) throws(Errno) in
      guard let info, let lock else { throw .EINVAL }
      return try files.setLock(
        NodeID(node), handle: HandleID(info.pointee.fh), owner: LockOwner(info.pointee.lock_owner),
        to: try LockRange(lock.pointee), parking: parking, by: caller)
    }
  }
  table.flock = { request, node, info, operation in
    serveLock(request, sleep: operation & LOCK_NB == 0) { (files, caller, parking) throws(Errno) in
      guard let info else { throw .EINVAL }
      let kind: LockRange.Kind =
        switch operation & ~LOCK_NB {
        case LOCK_SH: .read
        case LOCK_EX: .write
        case LOCK_UN: .none
        default: throw .EINVAL
        }
      return try files.setFlock(
        NodeID(node), handle: HandleID(info.pointee.fh), owner: LockOwner(info.pointee.lock_owner),
        to: kind, parking: parking, by: caller)
    }
  }
}

/// Replies unless the request was parked.
private func serveLock(
  _ request: fuse_req_t?, sleep: Bool,
  _ ask: (any FileSystem, Caller, ParkingPlace?) throws(Errno) -> LockOutcome
) {
  serve(request) { (files, caller) throws(Errno) in
    guard let request else { throw .EINVAL }
    let session = session(of: request)
    do throws(Errno) {
      return try ask(files, caller, sleep ? ParkingPlace(request: request, session: session) : nil)
    } catch .EAGAIN where session.isReleasing {
      // A close that returned before this request was made may still be in another worker's hands.
      session.waitForReleases()
      return try ask(files, caller, nil)
    }
  } _: { request, _, outcome in
    if case .done = outcome { fuse_reply_err(request, 0) }
  }
}

extension LockRange {
  init(_ record: flock) throws(Errno) {
    let kind: Kind
    switch Int32(record.l_type) {
    case F_RDLCK: kind = .read
    case F_WRLCK: kind = .write
    case F_UNLCK: kind = .none
    default: throw .EINVAL
    }
    let first = Int64(record.l_start)
    guard first >= 0, record.l_len >= 0 else { throw .EINVAL }
    // A length of 0 reaches to the end, however far that will be.
    var last = Int64.max
    if record.l_len > 0 {
      let (end, overflow) = first.addingReportingOverflow(Int64(record.l_len) - 1)
      if !overflow { last = end }
    }
    self.init(kind: kind, first: first, last: last, pid: record.l_pid)
  }

  fileprivate var record: flock {
    var record = flock()
    record.l_type =
      switch kind {
      case .read: Int16(F_RDLCK)
      case .write: Int16(F_WRLCK)
      case .none: Int16(F_UNLCK)
      }
    record.l_whence = Int16(SEEK_SET)
    record.l_start = off_t(first)
    record.l_len = last == .max ? 0 : off_t(last - first + 1)
    record.l_pid = pid
    return record
  }
}
