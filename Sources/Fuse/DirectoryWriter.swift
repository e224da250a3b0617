// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CFuse
internal import Glibc
package import LinuxIO

/// The page of a listing that is sent in one reply.
package struct DirectoryWriter {
  /// Whether the kernel wants each entry's attributes with it, as if it had looked it up.
  package let withAttributes: Bool
  private let buffer: UnsafeMutableRawBufferPointer
  /// How much of the buffer is filled.
  private(set) var count = 0
  /// The nodes whose lookups this page counts, should it not arrive.
  private(set) var lookups: [NodeID] = []

  init(_ buffer: UnsafeMutableRawBufferPointer, withAttributes: Bool) {
    self.buffer = buffer
    self.withAttributes = withAttributes
  }

  /// struct fuse_dirent without its name, and the entry that goes before it in a listing with attributes.
  private static let header = 24

  private func size(nameLength: Int) -> Int {
    (withAttributes ? Wire.entrySize : 0) + (Self.header + nameLength + 7) & ~7
  }

  /// How many bytes of the kernel's own entries, without attributes, about fill the page.
  package var roomInEntries: Int {
    let usual = 32
    return (buffer.count - count) / (usual + (withAttributes ? Wire.entrySize : 0)) * usual
  }

  /// Whether an entry of this name still has room.
  ///
  /// Ask before looking its object up.
  package func hasRoom(for name: Name) -> Bool { count + size(nameLength: name.length) <= buffer.count }

  /// Adds an entry that ``hasRoom(for:)``; without `entry` the kernel learns its name, type and number only.
  package mutating func add(_ name: Name, inode: UInt64, type: UInt8, next: Int64, entry: Entry? = nil) {
    let length = name.length
    let size = size(nameLength: length)
    guard count + size <= buffer.count, let base = buffer.baseAddress else { return }
    var at = base + count
    memset(at, 0, size)
    if withAttributes {
      if let entry, let node = entry.node {
        Wire.write(entry, to: at)
        lookups.append(node)
      }
      at += Wire.entrySize
    }
    at.storeBytes(of: inode, as: UInt64.self)
    at.storeBytes(of: next, toByteOffset: 8, as: Int64.self)
    at.storeBytes(of: UInt32(truncatingIfNeeded: length), toByteOffset: 16, as: UInt32.self)
    at.storeBytes(of: UInt32(type), toByteOffset: 20, as: UInt32.self)
    memcpy(at + Self.header, name.bytes, length)
    count += size
  }

  var bytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count])
  }
}
