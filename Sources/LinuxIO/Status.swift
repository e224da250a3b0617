// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A point in time to set, or one of the two words that `utimensat(2)` knows.
package enum TimeChange: Sendable {
  case keep
  case now
  case set(FileTime)

  fileprivate var value: timespec {
    switch self {
    case .keep: timespec(tv_sec: 0, tv_nsec: Int(CLX_UTIME_OMIT))
    case .now: timespec(tv_sec: 0, tv_nsec: Int(CLX_UTIME_NOW))
    case .set(let time): time
    }
  }
}

extension FD {
  /// Corresponds to `fstat(2)`, also of a descriptor that only names its object.
  @inline(__always)
  package func status() throws(Errno) -> FileStatus {
    var status = stat()
    try check(clx_fstat(raw, &status))
    return FileStatus(status)
  }

  /// What the kernel remembers of it: a filesystem that hangs is not asked.
  ///
  /// Which object it is, and of what type, holds whatever has happened since.
  package func statusInMemory() throws(Errno) -> FileStatus { try status(0x4000) }

  /// What its filesystem says now, whatever the kernel remembers.
  package func statusAnew() throws(Errno) -> FileStatus { try status(0x2000) }

  /// What decides who may do what with it, or with a child; links are not followed.
  ///
  /// Times and sizes may be old: a program that serves a filesystem is asked again for those after each
  /// change, and for the rest only when what the kernel remembers of it has expired.
  package func standing(of name: Name = .empty, inMemory: Bool = false) throws(Errno) -> FileStatus {
    try requireOneName(name)
    let (noAutomount, typeToInode) = (Int32(0x800), UInt32(0x11f))
    return try status(
      (inMemory ? 0x4000 : 0) | AT_SYMLINK_NOFOLLOW | noAutomount, of: name, typeToInode)
  }

  /// Corresponds to `statx(2)`, with `AT_STATX_DONT_SYNC` or `AT_STATX_FORCE_SYNC`.
  private func status(
    _ flags: Int32, of name: Name = .empty, _ mask: UInt32 = CLX_STATX_BASIC_STATS
  ) throws(Errno) -> FileStatus {
    var known = clx_statx()
    try check(clx_statx(raw, name.bytes, CLX_AT_EMPTY_PATH | flags, mask, &known))
    var status = stat()
    status.st_dev = dev_t(clx_makedev(known.stx_dev_major, known.stx_dev_minor))
    status.st_ino = ino_t(known.stx_ino)
    status.st_mode = mode_t(known.stx_mode)
    status.st_rdev = dev_t(clx_makedev(known.stx_rdev_major, known.stx_rdev_minor))
    status.st_nlink = nlink_t(known.stx_nlink)
    (status.st_uid, status.st_gid) = (known.stx_uid, known.stx_gid)
    status.st_size = off_t(clamping: known.stx_size)
    status.st_blksize = blksize_t(known.stx_blksize)
    status.st_blocks = blkcnt_t(clamping: known.stx_blocks)
    status.st_atim = known.stx_atime.value
    status.st_mtim = known.stx_mtime.value
    status.st_ctim = known.stx_ctime.value
    return FileStatus(status)
  }

  /// Corresponds to `fstatat(2)` of a child, links not followed.
  package func status(of name: Name) throws(Errno) -> FileStatus {
    try requireOneName(name)
    var status = stat()
    try check(fstatat(raw, name.bytes, &status, AT_SYMLINK_NOFOLLOW))
    return FileStatus(status)
  }

  /// Fills in the kernel's 256 bytes of `statx(2)`.
  package func extendedStatus(mask: UInt32, into bytes: UnsafeMutableRawPointer) throws(Errno) {
    try check(
      clx_statx(
        raw, Name.empty.bytes, CLX_AT_EMPTY_PATH, mask, bytes.assumingMemoryBound(to: clx_statx.self)))
  }

  /// Has the kernel ask for what it remembers of an object.
  ///
  /// Corresponds to `statx(2)` with `AT_STATX_FORCE_SYNC`.
  package func refreshStatus() {
    let forceSync: Int32 = 0x2000
    let basic: UInt32 = 0x7ff
    var status = clx_statx()
    _ = clx_statx(raw, Name.empty.bytes, CLX_AT_EMPTY_PATH | forceSync, basic, &status)
  }

  /// Whether this is a directory, by what the kernel remembers: a filesystem that hangs is not asked.
  package var isKnownDirectory: Bool {
    let dontSync: Int32 = 0x4000
    let typeOnly: UInt32 = 1
    var status = clx_statx()
    let flags = CLX_AT_EMPTY_PATH | dontSync
    guard clx_statx(raw, Name.empty.bytes, flags, typeOnly, &status) == 0 else { return false }
    return UInt32(status.stx_mode) & 0o170000 == 0o040000
  }

  /// Whether this is a pipe without a name, by what the kernel remembers; all of them have one device.
  package var isKnownPipe: Bool {
    do throws(Errno) {
      let ends = try pipe()
      return try deviceInMemory() == ends.read.fd.deviceInMemory()
    } catch {
      return false
    }
  }

  /// The number of the mount through which this was opened, by what the kernel remembers.
  ///
  /// Linux 5.8 tells it; ENOSYS before that.
  package func mountNumber() throws(Errno) -> UInt64 {
    let dontSync: Int32 = 0x4000
    let mountNumber: UInt32 = 0x1000
    var status = clx_statx()
    try check(clx_statx(raw, Name.empty.bytes, CLX_AT_EMPTY_PATH | dontSync, mountNumber, &status))
    guard status.stx_mask & mountNumber != 0 else { throw .ENOSYS }
    return status.stx_mnt_id
  }

  /// When the object was made, as far as the backing filesystem knows.
  package func creationTime() throws(Errno) -> FileTime? {
    var status = clx_statx()
    try check(clx_statx(raw, Name.empty.bytes, CLX_AT_EMPTY_PATH, CLX_STATX_BTIME, &status))
    guard status.stx_mask & CLX_STATX_BTIME != 0 else { return nil }
    return timespec(tv_sec: Int(status.stx_btime.tv_sec), tv_nsec: Int(status.stx_btime.tv_nsec))
  }

  /// Corresponds to `fchmodat2(2)`; before Linux 6.6 through /proc.
  package func changeMode(_ mode: FileMode) throws(Errno) {
    if clx_fchmodat2(raw, Name.empty.bytes, mode, CLX_AT_EMPTY_PATH) == 0 { return }
    let error = Errno.last
    guard error == .ENOSYS else { throw error }
    try withOwnLink { (links, link) throws(Errno) in try check(fchmodat(links, link, mode, 0)) }
  }

  /// Corresponds to `fchownat(2)`; an id that is nil stays as it is.
  package func changeOwner(uid: UInt32?, gid: UInt32?) throws(Errno) {
    try check(
      fchownat(raw, Name.empty.bytes, uid ?? .max, gid ?? .max, CLX_AT_EMPTY_PATH))
  }

  /// Corresponds to `utimensat(2)`.
  package func changeTimes(access: TimeChange, modification: TimeChange) throws(Errno) {
    var times = (access.value, modification.value)
    let result = withUnsafePointer(to: &times) {
      $0.withMemoryRebound(to: timespec.self, capacity: 2) {
        utimensat(raw, Name.empty.bytes, $0, CLX_AT_EMPTY_PATH)
      }
    }
    try check(result)
  }

  /// Corresponds to `truncate(2)`, of the very object that this descriptor names.
  package func truncate(to size: Int) throws(Errno) {
    try withOwnPath { (path) throws(Errno) in
      try retrying { Glibc.truncate(path, size) }
    }
  }

  /// Corresponds to `ftruncate(2)`, of a file that is open for writing.
  package func truncateOpen(to size: Int) throws(Errno) {
    try retrying { ftruncate(raw, size) }
  }

  /// Corresponds to `fstatvfs(3)`.
  package func filesystemStatus() throws(Errno) -> FilesystemStatus {
    var status = statvfs()
    try check(fstatvfs(raw, &status))
    return status
  }
}

extension clx_statx_time {
  fileprivate var value: timespec { timespec(tv_sec: Int(tv_sec), tv_nsec: Int(tv_nsec)) }
}
