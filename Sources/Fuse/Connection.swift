// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import CLinux
internal import Glibc
package import LinuxIO

/// The kernel's end of a session: what it agreed to, and the notifications that it can be sent.
///
/// All of these are safe on a thread that serves a request. Invalidating an entry by name is not: it would
/// wait for the directory's lock, which the kernel holds while it waits for our reply.
package protocol Connection: AnyObject, Sendable {
  /// Whether data can go straight to backing files.
  var passthrough: Bool { get }

  /// Whether what is opened past the page cache can be mapped shared: see
  /// ``ConnectionSettings/sharesDirectMaps``.
  var sharesDirectMaps: Bool { get }

  /// Makes the kernel drop the attributes of this object, and those in replies under way.
  func attributesChanged(_ node: NodeID)

  /// Makes the kernel write back a file's page cache, and drop it there and in every memory map.
  ///
  /// Not from a request's own thread: this waits for reads and writes of the file that are under way.
  func contentsChanged(_ node: NodeID)

  /// Makes the kernel look up every name again before it next uses it.
  ///
  /// False where it can't (before Linux 6.16).
  func entriesChanged() -> Bool

  /// Makes the kernel drop the entries of these objects that are not in use, in this order.
  ///
  /// An entry in a directory keeps that in use.
  ///
  /// False where it can't (before Linux 6.18). Nothing that is in use is harmed.
  func dropUnused(_ nodes: [NodeID]) -> Bool

  /// Whether the kernel has this object now, and forgets its attributes if so.
  func knows(_ node: NodeID) -> Bool

  /// Whether the kernel has this object now, which changes nothing for it.
  func has(_ node: NodeID) -> Bool

  /// The minor number of the device that the kernel gave the mount; its major number is 0.
  var device: UInt32? { get }

  /// Makes a file known to the kernel, for ``OpenMode/passthrough``. Of one object there may be only one
  /// while it is open.
  func registerBacking(_ file: FD) throws(Errno) -> Int32

  /// Takes a file back; what is open keeps working.
  func unregisterBacking(_ id: Int32)
}

/// Speaks to the kernel over a session.
final class SessionConnection: Connection {
  let passthrough: Bool
  let sharesDirectMaps: Bool
  // The session owns the filesystem, which keeps this: until it is told that the connection has ended
  // (`FileSystem.ended`).
  private let session: Session

  init(_ session: Session, _ agreed: Handshake.Agreement) {
    self.session = session
    passthrough = agreed.passthrough
    sharesDirectMaps = agreed.sharesDirectMaps
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

  func dropUnused(_ nodes: [NodeID]) -> Bool {
    let prune: Int32 = 9
    var isDone = true
    // The kernel takes as many at once as there is room for in what is written to it.
    for start in stride(from: 0, to: nodes.count, by: 256) {
      let part = nodes[start..<min(start + 256, nodes.count)].map(\.raw)
      // A count, and three words that are not used.
      let body = [UInt64(part.count), 0] + part
      isDone = body.withUnsafeBytes { session.write(unique: 0, code: prune, $0) } && isDone
    }
    return isDone
  }

  func knows(_ node: NodeID) -> Bool {
    fuse_lowlevel_notify_inval_inode(session.raw, node.raw, -1, 0) != -ENOENT
  }

  func has(_ node: NodeID) -> Bool {
    let store: Int32 = 4
    // struct fuse_notify_store_out: the node, an offset, and how many bytes are to go into its page cache.
    // None change nothing; but it is looked for.
    let body = [node.raw, 0, 0]
    let isFound = body.withUnsafeBytes { session.write(unique: 0, code: store, $0) }
    return isFound || Errno.last != .ENOENT
  }

  var device: UInt32? {
    let lines = FD.text(of: "/proc/self/fdinfo/\(session.fd.raw)", limit: 4096)?.parts(between: "\n") ?? []
    let label = "fuse_connection:"
    guard let line = lines.first(where: { $0.hasPrefix(label) }) else { return nil }
    return UInt32(line.dropFirst(label.count).drop { $0 == " " || $0 == "\t" })
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
