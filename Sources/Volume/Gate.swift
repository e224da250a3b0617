// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

// The gate: each operation asks here before it touches the store. Reasons become errnos here and nowhere else.

extension View {
  /// Throws unless the caller may do all of `rights` to the object.
  func authorize(_ rights: Rights, on status: FileStatus, zone: Zone, by caller: Caller) throws(Errno) {
    let decision = decide(rights, on: Object(status, zone: zone), by: Subject(caller)) { gid in
      isSupplementaryGroup(gid, ofThread: caller.pid) ? .member : .notMember
    }
    if case .deny(let denial) = decision { throw Errno(denial) }
  }

  /// Throws unless the caller may remove, replace or move the object that `name` stands for.
  ///
  /// `status` is the object's own, `parentStatus` that of the directory it is in. That the caller may change the directory has
  /// been asked before: without that, nothing may be said about what is in it.
  func authorizeRemoval(
    of status: FileStatus, zone: Zone, from parentStatus: FileStatus, by caller: Caller
  ) throws(Errno) {
    if zone.isSealed { throw .EROFS }
    if zone.isSkeleton { throw .EPERM }
    let sticky = parentStatus.st_mode & S_ISVTX != 0
    if sticky, caller.uid != 0, caller.uid != status.st_uid, caller.uid != parentStatus.st_uid {
      throw .EPERM
    }
  }

  /// Throws unless the caller may give the object these ids.
  ///
  /// Corresponds to the rules of `chown(2)`.
  func authorizeOwners(
    uid: UInt32?, gid: UInt32?, on status: FileStatus, zone: Zone, by caller: Caller
  ) throws(Errno) {
    if zone.isSealed { throw .EROFS }
    if caller.uid == 0 { return }
    guard caller.uid == status.st_uid else { throw .EPERM }
    if let uid, uid != status.st_uid { throw .EPERM }
    if let gid, gid != status.st_gid, !isMember(caller, of: gid) { throw .EPERM }
  }

  /// Throws unless the caller may give a file one more name.
  ///
  /// Corresponds to `fs.protected_hardlinks`.
  ///
  /// The kernel asks for read and write access too, but its question does not come to us from this call.
  func authorizeLink(to status: FileStatus, zone: Zone, by caller: Caller) throws(Errno) {
    if zone.isSealed { throw .EROFS }
    if caller.uid == 0 || caller.uid == status.st_uid { return }
    let setGroupID = status.st_mode & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP
    guard status.isRegular, status.st_mode & S_ISUID == 0, !setGroupID else { throw .EPERM }
    do throws(Errno) {
      try authorize([.read, .write], on: status, zone: zone, by: caller)
    } catch {
      throw .EPERM
    }
  }

  /// Throws unless the caller may reach a fifo or a socket; tells whether everyone may.
  ///
  /// The kernel opens fifos and connects to sockets by itself, without a word to us: whoever finds the name is in. So the
  /// name is found only by those who may use what it stands for in every way that the kernel would let them.
  func authorizeMeetingPoint(_ status: FileStatus, zone: Zone, by caller: Caller) throws(Errno) -> Bool {
    let isFifo = status.type == S_IFIFO
    let all: FileMode = isFifo ? 0o666 : 0o222
    if status.st_mode & all == all { return true }
    if caller.uid == status.st_uid { return false }
    try authorize(isFifo ? [.read, .write] : .write, on: status, zone: zone, by: caller)
    return false
  }

  func isMember(_ caller: Caller, of gid: UInt32) -> Bool {
    caller.gid == gid || isSupplementaryGroup(gid, ofThread: caller.pid)
  }

  /// The mode without set-group-id where the caller could not have given it: not a member of the group.
  func allowedMode(_ mode: FileMode, gid: UInt32, isDirectory: Bool, by caller: Caller) -> FileMode {
    guard mode & S_ISGID != 0, !isDirectory, caller.uid != 0, !isMember(caller, of: gid) else { return mode }
    return mode & ~S_ISGID
  }
}

extension Errno {
  /// The errno of each reason.
  init(_ denial: Denial) {
    switch denial {
    case .sealed: self = .EROFS
    case .place: self = .EPERM
    case .flags, .ownership, .sticky: self = .EPERM
    case .list, .mode: self = .EACCES
    }
  }
}

extension Subject {
  init(_ caller: Caller) { self.init(uid: caller.uid, gid: caller.gid) }
}
