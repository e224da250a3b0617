// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing
internal import Volume

/// Answers that nobody takes: the kernel has given the request up, and will not give back what the answer
/// counts.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct UndeliveredTests {
  @Test func nothingIsKeptForThem() throws {
    let temporary = try TemporaryDirectory()
    try temporary.makeDirectory("tree")
    try temporary.makeDirectory("tree/Users")
    try temporary.makeDirectory("tree/Users/Shared", mode: 0o1777)
    try temporary.makeDirectory("point")
    let tree = try TemporaryDirectory.open(temporary.appending("tree"))
    let view = try View(Volume(tree: tree.fd, settings: VolumeSettings()))
    let point = try TemporaryDirectory.open(temporary.appending("point"))
    let connection = try Mount.direct(over: point.fd, MountSettings())
    defer { try? Mount.remove(at: temporary.appending("point"), lazily: true) }
    let session = try Session(view, over: connection, settings: ConnectionSettings())
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Session.bufferSize, alignment: 4096)
    defer { buffer.deallocate() }
    // The kernel's own first request.
    guard case .message(let count) = session.receive(into: buffer) else { throw Errno.EIO }
    session.process(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
    #expect(view.waitUntilStarted(milliseconds: patience))
    let before = view.counts.nodes

    // These the kernel has never sent, so it takes no answer to them.
    func process(_ message: Message) {
      buffer.copyBytes(from: message.bytes + [0])
      session.process(UnsafeMutableRawBufferPointer(rebasing: buffer[..<message.bytes.count]))
    }
    func node(_ path: String) throws -> UInt64 {
      var node = NodeID.root
      for part in path.split(separator: "/") {
        let entry = try String(part).withName { (name) throws(Errno) in
          try view.lookup(name, in: node, by: Caller(uid: 0, gid: 0, pid: 0))
        }
        node = try #require(entry.node)
      }
      return node.raw
    }
    process(Message(.lookup, unique: 1 << 40, node: 1, uid: 0, gid: 0, strings("Users")))
    #expect(view.counts.nodes == before)
    let shared = try node("Users/Shared")
    let known = view.counts.nodes
    for unique in UInt64(1 << 41)..<(1 << 41 + 20) {
      let flags = words(UInt32(O_RDWR | O_CREAT), 0o100644, 0, 0)
      process(
        Message(.create, unique: unique, node: shared, uid: 0, gid: 0, flags + strings("file\(unique)")))
      process(Message(.tmpfile, unique: unique, node: shared, uid: 0, gid: 0, flags + strings("#")))
      process(
        Message(
          .mkdir, unique: unique, node: shared, uid: 0, gid: 0, words(0o755, 0) + strings("dir\(unique)")))
      process(Message(.opendir, unique: unique, node: shared, uid: 0, gid: 0, words(0, 0)))
    }
    #expect(view.counts.nodes == known && view.counts.openFiles == 0 && view.counts.openDirectories == 0)
    let file = try node("Users/Shared/file\(1 << 41)")
    process(Message(.open, unique: 1 << 42, node: file, uid: 0, gid: 0, words(UInt32(O_RDONLY), 0)))
    #expect(view.counts.openFiles == 0)
    let handle = try view.openDirectory(NodeID(shared), by: Caller(uid: 0, gid: 0, pid: 0)).handle
    let nodes = view.counts.nodes
    let list = long(handle.raw, 0) + words(65536, 0) + long(0) + words(0, 0)
    process(Message(.readdirplus, unique: 1 << 43, node: shared, uid: 0, gid: 0, list))
    #expect(view.counts.nodes == nodes)
    view.releaseDirectory(NodeID(shared), handle: handle)
  }
}
