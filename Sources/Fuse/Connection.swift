// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc
package import LinuxIO

/// The kernel's end of a session: what it agreed to, and what can be said to it without being asked.
///
/// Only what is safe to say from the thread that serves a request is here: the kernel holds a directory's lock while it
/// waits for our reply, and invalidating an entry by name would wait for that same lock.
package protocol Connection: Sendable {
  /// Whether data can go straight to backing files.
  var passthrough: Bool { get }

  /// The kernel is to forget the attributes that it has of this object, and those in replies under way.
  func attributesChanged(_ node: NodeID)

  /// The kernel is to write out what it has of a file in its page cache, and drop it from there and from every memory map.
  ///
  /// Not from a request's own thread: this waits for reads and writes of the file that are under way.
  func contentsChanged(_ node: NodeID)

  /// The kernel is to look up every name again before it next walks over it. False where it can't (before Linux 6.16).
  func entriesChanged() -> Bool

  /// Makes a file known to the kernel, for ``OpenMode/passthrough``. Of one object there may be only one while it is open.
  func registerBacking(_ file: FD) throws(Errno) -> Int32

  /// Takes a file back; what is open keeps working.
  func unregisterBacking(_ id: Int32)
}

/// Speaks to the kernel over a session.
struct SessionConnection: Connection {
  let passthrough: Bool
  // The session owns the filesystem, which keeps this: until it is told that the connection has ended (`FileSystem.ended`).
  private let session: Session

  init(_ session: Session, passthrough: Bool) {
    self.session = session
    self.passthrough = passthrough
  }

  func attributesChanged(_ node: NodeID) {
    // An offset below zero: attributes only, no page is waited for. ENOENT just says that nothing was cached.
    _ = fuse_lowlevel_notify_inval_inode(session.raw, node.raw, -1, 0)
  }

  func contentsChanged(_ node: NodeID) {
    // A length of zero: to the end.
    _ = fuse_lowlevel_notify_inval_inode(session.raw, node.raw, 0, 0)
  }

  func entriesChanged() -> Bool {
    let incrementEpoch: Int32 = 8
    return session.write(unique: 0, code: incrementEpoch, UnsafeRawBufferPointer(start: nil, count: 0))
  }

  func registerBacking(_ file: FD) throws(Errno) -> Int32 {
    let backingOpen: UInt = 0x4010_e501
    var map = (file.raw, UInt32(0), UInt64(0))
    return try check(clx_ioctl(session.fd.raw, backingOpen, &map))
  }

  func unregisterBacking(_ id: Int32) {
    let backingClose: UInt = 0x4004_e502
    var id = id
    _ = clx_ioctl(session.fd.raw, backingClose, &id)
  }
}
