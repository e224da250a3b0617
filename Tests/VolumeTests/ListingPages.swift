// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Fuse
internal import LinuxIO
internal import TestSupport
internal import Volume

extension View {
  /// Reads the next page; gives the names and the offset after each.
  func page(
    _ node: NodeID, _ handle: HandleID, after offset: Int64, size: Int, withAttributes: Bool
  ) throws(Errno) -> [(name: String, inode: UInt64, next: Int64)] {
    try withRoom(size) { (room) throws(Errno) in
      var writer = DirectoryWriter(room, withAttributes: withAttributes)
      try readDirectory(node, handle: handle, after: offset, into: &writer, by: .me)
      for node in writer.lookups { forget(node, count: 1) }
      let bytes = Reply(bytes: Array(writer.bytes))
      var found: [(name: String, inode: UInt64, next: Int64)] = []
      var at = 0
      while at < bytes.bytes.count {
        if withAttributes { at += 128 }
        let length = Int(bytes.word(at + 16))
        let name = String(decoding: bytes.bytes[(at + 24)..<(at + 24 + length)], as: UTF8.self)
        found.append((name, bytes.long(at), Int64(bitPattern: bytes.long(at + 8))))
        at += (24 + length + 7) & ~7
      }
      return found
    }
  }
}
