// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A filesystem's own permanent name for one of its objects; a later object of the same number has another.
package struct FileHandle: Sendable {
  /// The longest that is kept.
  ///
  /// ext4 needs 8 bytes, xfs and tmpfs 12, btrfs 20.
  package static let capacity = 24

  package var bytes = InlineArray<3, UInt64>(repeating: 0)
  package var length: UInt8 = 0
  package var type: UInt16 = 0

  package init() {}

  /// Stands in for a handle, to compare with; nothing can be opened by it.
  package init(createdAt time: FileTime?) {
    type = .max
    guard let time else { return }
    bytes[0] = UInt64(bitPattern: Int64(time.tv_sec))
    bytes[1] = UInt64(bitPattern: Int64(time.tv_nsec))
  }

  /// All of it as bytes, to be kept elsewhere.
  package var encoded: [UInt8] {
    withUnsafeBytes(of: bytes) { bytes in
      [UInt8(truncatingIfNeeded: type), UInt8(truncatingIfNeeded: type >> 8)] + bytes.prefix(Int(length))
    }
  }

  /// What ``encoded`` gave; nil for anything else.
  package init?(encoded: [UInt8]) {
    guard (3...Self.capacity + 2).contains(encoded.count) else { return nil }
    type = UInt16(encoded[0]) | UInt16(encoded[1]) << 8
    length = UInt8(truncatingIfNeeded: encoded.count - 2)
    withUnsafeMutableBytes(of: &bytes) { bytes in
      for (index, byte) in encoded.dropFirst(2).enumerated() { bytes[index] = byte }
    }
  }

  package static func == (a: FileHandle, b: FileHandle) -> Bool {
    a.type == b.type && a.length == b.length && a.bytes[0] == b.bytes[0]
      && a.bytes[1] == b.bytes[1] && a.bytes[2] == b.bytes[2]
  }
}

extension FD {
  /// The handle of what this descriptor names, or nil where the filesystem has none, or none that fits.
  ///
  /// Corresponds to `name_to_handle_at(2)`.
  package func handle() -> FileHandle? {
    var handle = FileHandle()
    var length: UInt32 = 0
    var type: Int32 = 0
    let result = withUnsafeMutableBytes(of: &handle.bytes) { bytes in
      guard let base = bytes.baseAddress else { return Int32(-1) }
      return clx_name_to_handle_at(
        raw, Name.empty.bytes, base.assumingMemoryBound(to: UInt8.self),
        UInt32(FileHandle.capacity), &length, &type, CLX_AT_EMPTY_PATH)
    }
    guard result == 0, let shortType = UInt16(exactly: type), let shortLength = UInt8(exactly: length)
    else { return nil }
    handle.type = shortType
    handle.length = shortLength
    return handle
  }

  /// Finds an object of this descriptor's filesystem by its handle, named but not opened.
  ///
  /// Corresponds to `open_by_handle_at(2)`; ESTALE if the object is gone.
  package func open(_ handle: FileHandle) throws(Errno) -> OwnedFD {
    var attempt: UInt32 = 0
    while true {
      do throws(Errno) {
        return try openOnce(handle)
      } catch .ENOMEM where attempt < Self.attemptsByHandle {
        // Nothing to do with memory usually: the object's number is being given to a new one at this very
        // moment (in fs/inode.c, iget_locked finds it I_CREATING), so ours is gone. Asked again when that is
        // done, Linux says so. It does not tell when that is.
        attempt += 1
        usleep(attempt * 50)
      }
    }
  }

  /// A tenth of a second altogether; making a file may have to wait for a disk.
  private static let attemptsByHandle: UInt32 = 64

  private func openOnce(_ handle: FileHandle) throws(Errno) -> OwnedFD {
    var bytes = handle.bytes
    let opened = try check(
      withUnsafeBytes(of: &bytes) { bytes in
        guard let base = bytes.baseAddress else { return Int32(-1) }
        return clx_open_by_handle_at(
          raw, base.assumingMemoryBound(to: UInt8.self), UInt32(handle.length), Int32(handle.type),
          CLX_O_PATH | O_CLOEXEC)
      })
    return OwnedFD(owning: opened)
  }
}
