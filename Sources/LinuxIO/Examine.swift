// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// Reading what someone else has put there, and may still be changing.

extension FD {
  /// Opens a child for reading without waiting for anybody: no link, no other filesystem's root, no terminal.
  ///
  /// It may be of any kind, so ask before reading. With `sparingTime` reading leaves its access time alone,
  /// if it is ours. Corresponds to `openat2(2)`.
  package func openToExamine(_ name: Name, sparingTime: Bool = false) throws(Errno) -> OwnedFD {
    // O_NONBLOCK: a pipe that someone put in a file's place must not stop us.
    let flags = UInt64(O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
    let resolve = UInt64(CLX_RESOLVE_NO_XDEV | CLX_RESOLVE_NO_SYMLINKS | CLX_RESOLVE_BENEATH)
    if sparingTime {
      let noatime = flags | UInt64(CLX_O_NOATIME)
      do throws(Errno) {
        return OwnedFD(owning: try retrying { clx_openat2(raw, name.bytes, noatime, 0, resolve) })
      } catch {
        guard error == .EPERM else { throw error }
      }
    }
    return OwnedFD(owning: try retrying { clx_openat2(raw, name.bytes, flags, 0, resolve) })
  }

  /// Opens a child directory for reading its entries, without naming it first.
  ///
  /// Like ``openDirectory(_:)`` with one call for two; where that one says EXDEV or ENOTDIR, so does this.
  package func openDirectoryToExamine(_ name: Name) throws(Errno) -> OwnedFD {
    let flags = UInt64(O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    let resolve = UInt64(CLX_RESOLVE_NO_XDEV | CLX_RESOLVE_NO_SYMLINKS | CLX_RESOLVE_BENEATH)
    return OwnedFD(owning: try retrying { clx_openat2(raw, name.bytes, flags, 0, resolve) })
  }

  /// Opens what a path leads to, links followed, as long as none of them leads out of this directory.
  ///
  /// EXDEV for one that does, and for an absolute path. Corresponds to `openat2(2)`.
  package func openBeneath(_ path: some NameText, _ flags: Int32) throws(Errno) -> OwnedFD {
    let resolve = UInt64(CLX_RESOLVE_NO_XDEV | CLX_RESOLVE_NO_MAGICLINKS | CLX_RESOLVE_BENEATH)
    return try path.withName { (path) throws(Errno) in
      OwnedFD(
        owning: try retrying { clx_openat2(raw, path.bytes, UInt64(flags | O_CLOEXEC), 0, resolve) })
    }
  }

  /// All of an open file.
  ///
  /// Throws EINVAL if it is no regular file, EFBIG if it is longer than `limit`.
  package func contentsIfRegular(limit: Int) throws(Errno) -> [UInt8] {
    let status = try status()
    guard status.isRegular else { throw .EINVAL }
    // The size is asked first, so that nothing too long is read; and the file may grow meanwhile.
    guard status.st_size <= limit else { throw .EFBIG }
    let bytes = try readToEnd(limit: limit + 1)
    guard bytes.count <= limit else { throw .EFBIG }
    return bytes
  }

  /// Tells the kernel that the file will be read once, from start to end.
  ///
  /// Corresponds to `posix_fadvise(2)`.
  package func willBeReadOnce() {
    _ = posix_fadvise(raw, 0, 0, POSIX_FADV_SEQUENTIAL)
  }

  /// The names of the extended attributes of an open file, each ending in a zero.
  ///
  /// Corresponds to `flistxattr(2)`; needs no look at /proc, but a descriptor that is open for reading.
  package func openAttributeNames(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    try check(flistxattr(raw, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count))
  }

  /// The target of the symbolic link that this descriptor names.
  package func linkTarget() throws(Errno) -> [UInt8] { try linkTarget(of: Name.empty) }

  /// The target of a child that is a symbolic link.
  ///
  /// Corresponds to `readlinkat(2)`.
  package func linkTarget(of name: Name) throws(Errno) -> [UInt8] {
    try requireOneName(name)
    var target = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let length = try check(
      target.withUnsafeMutableBytes { buffer in
        guard let base = buffer.baseAddress else { return 0 }
        return readlinkat(raw, name.bytes, base.assumingMemoryBound(to: CChar.self), buffer.count)
      })
    target.removeLast(target.count - length)
    return target
  }
}
