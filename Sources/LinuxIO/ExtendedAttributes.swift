// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import Synchronization

// Extended attributes of the very object that a descriptor names. The calls on descriptors refuse one that only names its
// object (O_PATH), so they go through its own link: since Linux 6.13 starting at the directory of links, before by path.

extension FD {
  /// Corresponds to `getxattr(2)`: with an empty buffer it tells the size.
  package func attribute(
    _ name: UnsafePointer<CChar>, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    try withAttributeCalls { (links, link) in
      clx_getxattrat(links, link, name, buffer.baseAddress, UInt32(clamping: buffer.count))
    } before: { path in
      getxattr(path, name, buffer.baseAddress, buffer.count)
    }
  }

  /// Corresponds to `setxattr(2)`.
  package func setAttribute(
    _ name: UnsafePointer<CChar>, to value: UnsafeRawBufferPointer, flags: Int32
  ) throws(Errno) {
    _ = try withAttributeCalls { (links, link) in
      clx_setxattrat(
        links, link, name, value.baseAddress, UInt32(clamping: value.count), UInt32(bitPattern: flags))
    } before: { path in
      Int(setxattr(path, name, value.baseAddress, value.count, flags))
    }
  }

  /// Corresponds to `listxattr(2)`: with an empty buffer it tells the size.
  package func attributeNames(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let names = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
    return try withAttributeCalls { (links, link) in
      clx_listxattrat(links, link, 0, names, buffer.count)
    } before: { path in
      listxattr(path, names, buffer.count)
    }
  }

  /// The same of a child, links not followed: a seventh of the time that it takes to go through a descriptor's link.
  ///
  /// Corresponds to `listxattrat(2)`; ENOSYS before Linux 6.13.
  package func attributeNames(
    of child: Name, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    if knowsOlderOnly.load(ordering: .relaxed) { throw .ENOSYS }
    let names = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
    return try check(clx_listxattrat(raw, child.bytes, AT_SYMLINK_NOFOLLOW, names, buffer.count))
  }

  /// Corresponds to `removexattr(2)`.
  package func removeAttribute(_ name: UnsafePointer<CChar>) throws(Errno) {
    _ = try withAttributeCalls { (links, link) in
      clx_removexattrat(links, link, name)
    } before: { path in
      Int(removexattr(path, name))
    }
  }

  /// Calls the newer form, or the older where the kernel does not have that.
  @inline(__always)
  private func withAttributeCalls(
    _ newer: (_ links: Int32, _ link: UnsafePointer<CChar>) -> Int,
    before older: (UnsafePointer<CChar>) -> Int
  ) throws(Errno) -> Int {
    if !knowsOlderOnly.load(ordering: .relaxed) {
      let result = try withOwnLink { (links, link) throws(Errno) in newer(links, link) }
      if result >= 0 { return result }
      let error = Errno.last
      guard error == .ENOSYS else { throw error }
      knowsOlderOnly.store(true, ordering: .relaxed)
    }
    return try withOwnPath { (path) throws(Errno) in try check(older(path)) }
  }
}

private let knowsOlderOnly = Atomic<Bool>(false)
