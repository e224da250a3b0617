// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// Whole-file locks that belong to the open file: another open file of the same process counts as a stranger,
// and the kernel lets go when the last descriptor is closed, however the process ends.

extension FD {
  /// Takes the lock without waiting; false if someone else has it.
  ///
  /// Corresponds to `F_OFD_SETLK`.
  ///
  /// An exclusive lock needs a descriptor that is open for writing.
  package func tryLock(exclusive: Bool) throws(Errno) -> Bool {
    var lock = Self.wholeFile(exclusive ? F_WRLCK : F_RDLCK)
    do throws(Errno) {
      try retrying { clx_fcntl_lock(raw, CLX_F_OFD_SETLK, &lock) }
      return true
    } catch {
      guard error == .EAGAIN || error == .EACCES else { throw error }
      return false
    }
  }

  /// Gives it back, whoever else has inherited this descriptor.
  ///
  /// Corresponds to `F_OFD_SETLK` with F_UNLCK.
  package func unlock() throws(Errno) {
    var lock = Self.wholeFile(F_UNLCK)
    try retrying { clx_fcntl_lock(raw, CLX_F_OFD_SETLK, &lock) }
  }

  /// Whether someone else has it exclusively, or at all if that is asked; looking takes nothing.
  ///
  /// Corresponds to `F_OFD_GETLK`.
  package func isLockedByAnother(atAll: Bool = false) throws(Errno) -> Bool {
    var lock = Self.wholeFile(atAll ? F_WRLCK : F_RDLCK)
    try check(clx_fcntl_lock(raw, CLX_F_OFD_GETLK, &lock))
    return lock.l_type != Int16(F_UNLCK)
  }

  private static func wholeFile(_ type: Int32) -> flock {
    flock(l_type: Int16(type), l_whence: Int16(SEEK_SET), l_start: 0, l_len: 0, l_pid: 0)
  }
}
