// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// The contents of an open file.

extension FD {
  /// Corresponds to `pread(2)`.
  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    try retrying { pread(raw, buffer.baseAddress, buffer.count, off_t(offset)) }
  }

  /// Corresponds to `pwrite(2)`.
  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    try retrying { pwrite(raw, bytes.baseAddress, bytes.count, off_t(offset)) }
  }

  /// Writes at the end of the file, in one step with finding it.
  ///
  /// Corresponds to `pwritev2(2)` with `RWF_APPEND`.
  package func append(_ bytes: UnsafeRawBufferPointer) throws(Errno) -> Int {
    try retrying { clx_append(raw, bytes.baseAddress, bytes.count) }
  }

  /// Corresponds to `write(2)`, at the descriptor's own position.
  package func write(_ bytes: UnsafeRawBufferPointer) throws(Errno) -> Int {
    try retrying { Glibc.write(raw, bytes.baseAddress, bytes.count) }
  }

  /// Corresponds to `fsync(2)` or `fdatasync(2)`.
  package func synchronize(dataOnly: Bool) throws(Errno) {
    try retrying { dataOnly ? fdatasync(raw) : fsync(raw) }
  }

  /// Corresponds to `syncfs(2)`.
  package func synchronizeFilesystem() throws(Errno) {
    try check(clx_syncfs(raw))
  }

  /// Lets the disk begin with what was written there, without waiting for it.
  ///
  /// Corresponds to `sync_file_range(2)` with `SYNC_FILE_RANGE_WRITE`.
  package func startWriting(_ offset: Int64, length: Int64) {
    // Nothing depends on it but how long a later synchronization takes.
    _ = clx_start_writing(raw, off_t(offset), off_t(length))
  }

  /// Corresponds to `fallocate(2)`.
  package func allocate(mode: Int32, offset: Int64, length: Int64) throws(Errno) {
    try retrying { clx_fallocate(raw, mode, off_t(offset), off_t(length)) }
  }

  /// Corresponds to `lseek(2)`.
  package func seek(_ offset: Int64, _ whence: Int32) throws(Errno) -> Int64 {
    Int64(try check(lseek(raw, off_t(offset), whence)))
  }

  /// Corresponds to `copy_file_range(2)`.
  package func copyRange(
    at offset: Int64, to target: FD, at targetOffset: Int64, length: Int, flags: UInt32
  ) throws(Errno) -> Int {
    var from = off_t(offset)
    var to = off_t(targetOffset)
    return try retrying { clx_copy_file_range(raw, &from, target.raw, &to, length, flags) }
  }

  /// Makes an empty file's contents those of this one, without copying them: the two share their blocks until
  /// one is changed.
  ///
  /// Corresponds to the ioctl `FICLONE`.
  package func shareContents(with target: FD) throws(Errno) {
    // The argument is a number that stands where others have a pointer.
    try check(clx_ioctl(target.raw, CLX_FICLONE, UnsafeMutableRawPointer(bitPattern: Int(raw))))
  }

  /// Corresponds to `getdents64(2)`.
  package func readDirectory(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    guard let base = buffer.baseAddress else { throw .EINVAL }
    return try check(clx_getdents64(raw, base, buffer.count))
  }

  /// The flags that `lsattr` shows.
  ///
  /// Corresponds to the ioctl `FS_IOC_GETFLAGS`.
  package func inodeFlags() throws(Errno) -> UInt32 {
    var flags: UInt32 = 0
    try check(clx_ioctl(raw, CLX_FS_IOC_GETFLAGS, &flags))
    return flags
  }

  /// Corresponds to the ioctl `FS_IOC_SETFLAGS`.
  package func setInodeFlags(_ flags: UInt32) throws(Errno) {
    var flags = flags
    try check(clx_ioctl(raw, CLX_FS_IOC_SETFLAGS, &flags))
  }

  /// Whether the filesystem limits the room that a user's files take on it.
  ///
  /// Corresponds to `quotactl_fd(2)` with `Q_GETQUOTA`; false where nothing counts.
  package func hasQuota(of user: UInt32) throws(Errno) -> Bool {
    let found = clx_user_has_quota(raw, user)
    if found >= 0 { return found > 0 }
    let error = Errno.last
    let uncounted: [Errno] = [.ESRCH, .ENOSYS, .EOPNOTSUPP, .EINVAL, .ENOENT]
    guard uncounted.contains(error) else { throw error }
    return false
  }

  /// Whether any process, by a descriptor or a memory map, could change this regular file right now.
  ///
  /// The kernel grants a read lease only where nobody has the file open for writing, and a map keeps the file
  /// that it was made from open. The lease is released at once. The descriptor must be open for reading.
  ///
  /// An open for writing that comes between breaks the lease. The kernel tells its holder by `SIGIO`, which
  /// ends a process by default; `SIGURG` is ignored by default. A lease's release sets the signal back.
  package func isOpenForWriting() -> Bool {
    guard clx_fcntl(raw, CLX_F_SETSIG, Int(SIGURG)) == 0 else { return true }
    guard clx_fcntl(raw, CLX_F_SETLEASE, Int(F_RDLCK)) == 0 else { return true }
    _ = clx_fcntl(raw, CLX_F_SETLEASE, Int(F_UNLCK))
    return false
  }
}

/// Walks what `getdents64(2)` wrote.
package struct DirectoryEntries {
  /// One entry; its name is valid for as long as the buffer is.
  package struct Entry {
    package let name: Name
    package let inode: UInt64
    /// Where to go on reading after this entry.
    package let next: Int64
    /// `DT_*`, which is `S_IFMT` shifted down by 12.
    package let type: UInt8
  }

  private let bytes: UnsafeRawBufferPointer
  /// Where the next entry begins.
  package private(set) var position = 0

  package init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// The next entry, or nil at the end.
  package mutating func next() -> Entry? {
    // d_ino, d_off, d_reclen, d_type and at least the zero of an empty name.
    let header = 19
    guard let base = bytes.baseAddress, position + header < bytes.count else { return nil }
    let record = base + position
    let length = Int(record.loadUnaligned(fromByteOffset: 16, as: UInt16.self))
    guard length > header, position + length <= bytes.count else { return nil }
    position += length
    return Entry(
      name: Name((record + header).assumingMemoryBound(to: CChar.self)),
      inode: record.loadUnaligned(as: UInt64.self),
      next: record.loadUnaligned(fromByteOffset: 8, as: Int64.self),
      type: record.load(fromByteOffset: 18, as: UInt8.self))
  }
}
