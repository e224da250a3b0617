// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// Locks that belong to the open file, on all of it or on some of its bytes: another open file of the same
// process counts as a stranger, and the kernel lets go when the last descriptor is closed, however the
// process ends.

extension FD {
  /// Takes the lock without waiting; false if someone else has it.
  ///
  /// Corresponds to `F_OFD_SETLK`.
  ///
  /// An exclusive lock needs a descriptor that is open for writing.
  package func tryLock(exclusive: Bool) throws(Errno) -> Bool {
    try tryLock(Self.wholeFile(exclusive ? F_WRLCK : F_RDLCK))
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

  /// Takes a shared lock on some bytes without waiting; false if someone else has one against it.
  package func tryShare(_ bytes: Range<Int64>) throws(Errno) -> Bool {
    try tryLock(Self.lock(F_RDLCK, bytes))
  }

  /// Gives some bytes back.
  package func unlock(_ bytes: Range<Int64>) throws(Errno) {
    var lock = Self.lock(F_UNLCK, bytes)
    try retrying { clx_fcntl_lock(raw, CLX_F_OFD_SETLK, &lock) }
  }

  /// Whether someone else has some bytes exclusively.
  package func isLockedByAnother(_ bytes: Range<Int64>) throws(Errno) -> Bool {
    var lock = Self.lock(F_RDLCK, bytes)
    try check(clx_fcntl_lock(raw, CLX_F_OFD_GETLK, &lock))
    return lock.l_type != Int16(F_UNLCK)
  }

  private func tryLock(_ wanted: flock) throws(Errno) -> Bool {
    var lock = wanted
    do throws(Errno) {
      try retrying { clx_fcntl_lock(raw, CLX_F_OFD_SETLK, &lock) }
      return true
    } catch {
      guard error == .EAGAIN || error == .EACCES else { throw error }
      return false
    }
  }

  private static func wholeFile(_ type: Int32) -> flock { lock(type, 0..<0) }

  /// An empty range that begins with the first byte is the whole file, however long it becomes.
  private static func lock(_ type: Int32, _ bytes: Range<Int64>) -> flock {
    flock(
      l_type: Int16(type), l_whence: Int16(SEEK_SET), l_start: off_t(bytes.lowerBound),
      l_len: off_t(bytes.count), l_pid: 0)
  }
}

extension FileStatus {
  /// Which process has taken a lock of `flock(2)` on it, as `/proc/locks` tells.
  package var lockHolder: Int32? {
    let place = DeviceNumber(UInt64(st_dev))
    for line in FD.text(of: "/proc/locks", limit: 1 << 22)?.parts(between: "\n") ?? [] {
      let words = line.parts(between: " ")
      guard words.count > 5, words[1] == "FLOCK" else { continue }
      let numbers = words[5].parts(between: ":").map(String.init)
      if numbers.count == 3, UInt64(numbers[0], radix: 16) == UInt64(place.major),
        UInt64(numbers[1], radix: 16) == UInt64(place.minor), UInt64(numbers[2]) == UInt64(st_ino)
      {
        // Whoever has inherited it is not told of.
        return Int32(words[4]).flatMap { access("/proc/\($0)", F_OK) == 0 ? $0 : nil }
      }
    }
    return nil
  }
}
