// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

// Opening and naming. Every call takes a directory's descriptor and one name; none of them follows a
// symbolic link in that name.

extension FD {
  /// Throws EINVAL for a name with a slash in it: whatever text a name was made of, it never leads elsewhere.
  ///
  /// From the working directory paths are followed.
  @inline(__always)
  func requireOneName(_ name: Name) throws(Errno) {
    guard raw == AT_FDCWD || strchr(name.bytes, 0x2f) == nil else { throw .EINVAL }
  }

  /// Opens a child.
  ///
  /// Corresponds to `openat(2)` with `O_NOFOLLOW` and `O_CLOEXEC`.
  package func open(_ name: Name, _ flags: Int32, mode: FileMode = 0) throws(Errno) -> OwnedFD {
    try requireOneName(name)
    let all = flags | O_NOFOLLOW | O_CLOEXEC
    return OwnedFD(owning: try retrying { clx_openat(raw, name.bytes, all, mode) })
  }

  /// Opens what is at a path in which no name is a link: ELOOP if one is.
  ///
  /// Corresponds to `openat2(2)`.
  package func openWithoutLinks(_ path: Name, _ flags: Int32) throws(Errno) -> OwnedFD {
    OwnedFD(
      owning: try retrying {
        clx_openat2(raw, path.bytes, UInt64(flags | O_CLOEXEC), 0, UInt64(CLX_RESOLVE_NO_SYMLINKS))
      })
  }

  /// Names a child without opening it, whatever kind it is of, and never another filesystem's root.
  ///
  /// Corresponds to `openat2(2)` with `O_PATH`. Throws EXDEV where something is mounted on the child.
  package func child(_ name: Name) throws(Errno) -> OwnedFD {
    let flags = UInt64(CLX_O_PATH | O_NOFOLLOW | O_CLOEXEC)
    let resolve = UInt64(CLX_RESOLVE_NO_XDEV | CLX_RESOLVE_NO_MAGICLINKS | CLX_RESOLVE_BENEATH)
    return OwnedFD(
      owning: try retrying { clx_openat2(raw, name.bytes, flags, 0, resolve) })
  }

  /// Names the directory that this one is in; at the root of the filesystem, itself.
  package func openParent() throws(Errno) -> OwnedFD {
    let flags = CLX_O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
    return OwnedFD(owning: try retrying { clx_openat(raw, "..", flags, 0) })
  }

  /// Opens what this descriptor names once more, with other flags.
  package func reopened(_ flags: Int32) throws(Errno) -> OwnedFD {
    try withOwnLink { (links, link) throws(Errno) in
      // O_NOFOLLOW would stop at the link that leads to the object.
      OwnedFD(owning: try retrying { clx_openat(links, link, (flags & ~O_NOFOLLOW) | O_CLOEXEC, 0) })
    }
  }

  /// Makes an unnamed file in this directory.
  ///
  /// Corresponds to `open(2)` with `O_TMPFILE`.
  package func openUnnamed(_ flags: Int32, mode: FileMode) throws(Errno) -> OwnedFD {
    try withOwnLink { (links, link) throws(Errno) in
      OwnedFD(owning: try retrying { clx_openat(links, link, flags | CLX_O_TMPFILE | O_CLOEXEC, mode) })
    }
  }

  /// Corresponds to `dup(2)`, close-on-exec.
  package func duplicated() throws(Errno) -> OwnedFD {
    OwnedFD(owning: try check(fcntl(raw, F_DUPFD_CLOEXEC, 0)))
  }

  /// Lets another number stand for what this one stands for, instead of what it did.
  ///
  /// Corresponds to `dup3(2)`, close-on-exec. Calls that are using the other number now end with what it
  /// stood for.
  package func replace(_ other: FD) throws(Errno) {
    try retrying { clx_dup3(raw, other.raw, O_CLOEXEC) }
  }

  /// Corresponds to `mkdirat(2)`.
  package func makeDirectory(_ name: Name, mode: FileMode) throws(Errno) {
    try requireOneName(name)
    try check(mkdirat(raw, name.bytes, mode))
  }

  /// Corresponds to `mknodat(2)`.
  package func makeNode(_ name: Name, mode: FileMode, device: UInt64 = 0) throws(Errno) {
    try requireOneName(name)
    try check(mknodat(raw, name.bytes, mode, dev_t(device)))
  }

  /// Corresponds to `symlinkat(2)`.
  package func makeSymlink(_ name: Name, to target: UnsafePointer<CChar>) throws(Errno) {
    try requireOneName(name)
    try check(symlinkat(target, raw, name.bytes))
  }

  /// Removes a name.
  ///
  /// Corresponds to `unlinkat(2)`.
  package func remove(_ name: Name, directory: Bool) throws(Errno) {
    try requireOneName(name)
    try check(unlinkat(raw, name.bytes, directory ? AT_REMOVEDIR : 0))
  }

  /// Gives the object that this descriptor names one more name.
  ///
  /// Corresponds to `linkat(2)`.
  ///
  /// `AT_EMPTY_PATH` needs a capability that a user's daemon has not; the link in /proc needs none.
  package func link(into directory: FD, as name: Name) throws(Errno) {
    try directory.requireOneName(name)
    try withOwnLink { (links, link) throws(Errno) in
      try check(linkat(links, link, directory.raw, name.bytes, AT_SYMLINK_FOLLOW))
    }
  }

  /// Gives a file that this process has made without a name its first one, also where there is no /proc.
  ///
  /// Corresponds to `linkat(2)` with `AT_EMPTY_PATH`. ENOENT before Linux 6.10, which asks for a capability.
  package func linkUnnamed(into directory: FD, as name: Name) throws(Errno) {
    try directory.requireOneName(name)
    try check(linkat(raw, Name.empty.bytes, directory.raw, name.bytes, CLX_AT_EMPTY_PATH))
  }

  /// The target of the symbolic link that this descriptor names.
  ///
  /// Corresponds to `readlinkat(2)`.
  package func readLink(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    guard let base = buffer.baseAddress?.assumingMemoryBound(to: CChar.self) else { throw .EINVAL }
    return try check(readlinkat(raw, Name.empty.bytes, base, buffer.count))
  }
}
