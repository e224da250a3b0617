// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
internal import Synchronization

// Extended attributes of the very object that a descriptor names. The calls on descriptors refuse one that
// only names its object (O_PATH) with EBADF, and soon; for it they go through its own link, which takes four
// times as long: since Linux 6.13 starting at the directory of links, before by path.

extension FD {
  /// Corresponds to `getxattr(2)`: with an empty buffer it tells the size.
  package func attribute(
    _ name: UnsafePointer<CChar>, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    try withAttributeCalls { raw in
      fgetxattr(raw, name, buffer.baseAddress, buffer.count)
    } byLink: { (links, link) in
      clx_getxattrat(links, link, name, buffer.baseAddress, UInt32(clamping: buffer.count))
    } byPath: { path in
      getxattr(path, name, buffer.baseAddress, buffer.count)
    }
  }

  /// Corresponds to `setxattr(2)`.
  package func setAttribute(
    _ name: UnsafePointer<CChar>, to value: UnsafeRawBufferPointer, flags: Int32
  ) throws(Errno) {
    _ = try withAttributeCalls { raw in
      Int(fsetxattr(raw, name, value.baseAddress, value.count, flags))
    } byLink: { (links, link) in
      clx_setxattrat(
        links, link, name, value.baseAddress, UInt32(clamping: value.count), UInt32(bitPattern: flags))
    } byPath: { path in
      Int(setxattr(path, name, value.baseAddress, value.count, flags))
    }
  }

  /// One that is no longer than that; ERANGE if it is.
  package func attribute(_ name: some NameText, limit: Int) throws(Errno) -> [UInt8] {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: limit, alignment: 1)
    defer { room.deallocate() }
    let count = try name.withName { (name) throws(Errno) in try attribute(name.bytes, into: room) }
    return Array(room[..<count])
  }

  package func setAttribute(_ name: some NameText, to value: [UInt8]) throws(Errno) {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: value.count, alignment: 1)
    defer { room.deallocate() }
    room.copyBytes(from: value)
    try name.withName { (name) throws(Errno) in
      try setAttribute(name.bytes, to: UnsafeRawBufferPointer(room), flags: 0)
    }
  }

  /// Corresponds to `listxattr(2)`: with an empty buffer it tells the size.
  package func attributeNames(into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let names = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
    return try withAttributeCalls { raw in
      flistxattr(raw, names, buffer.count)
    } byLink: { (links, link) in
      clx_listxattrat(links, link, 0, names, buffer.count)
    } byPath: { path in
      listxattr(path, names, buffer.count)
    }
  }

  /// The same of a child, links not followed: a seventh of the time that it takes to go through a
  /// descriptor's link.
  ///
  /// Corresponds to `listxattrat(2)`; ENOSYS before Linux 6.13.
  package func attributeNames(
    of child: Name, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    if !hasCallsByLink.load(ordering: .relaxed) { throw .ENOSYS }
    let names = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
    return try check(clx_listxattrat(raw, child.bytes, AT_SYMLINK_NOFOLLOW, names, buffer.count))
  }

  /// Corresponds to `removexattr(2)`.
  package func removeAttribute(_ name: UnsafePointer<CChar>) throws(Errno) {
    _ = try withAttributeCalls { raw in
      Int(fremovexattr(raw, name))
    } byLink: { (links, link) in
      clx_removexattrat(links, link, name)
    } byPath: { path in
      Int(removexattr(path, name))
    }
  }

  /// Takes the shortest way that this descriptor and this kernel allow.
  @inline(__always)
  private func withAttributeCalls(
    direct: (Int32) -> Int, byLink: (_ links: Int32, _ link: UnsafePointer<CChar>) -> Int,
    byPath: (UnsafePointer<CChar>) -> Int
  ) throws(Errno) -> Int {
    let result = direct(raw)
    if result >= 0 { return result }
    var error = Errno.last
    guard error == .EBADF else { throw error }
    if hasCallsByLink.load(ordering: .relaxed) {
      let result = try withOwnLink { (links, link) throws(Errno) in byLink(links, link) }
      if result >= 0 { return result }
      error = Errno.last
      guard error == .ENOSYS else { throw error }
      hasCallsByLink.store(false, ordering: .relaxed)
    }
    return try withOwnPath { (path) throws(Errno) in try check(byPath(path)) }
  }
}

private let hasCallsByLink = Atomic<Bool>(true)
