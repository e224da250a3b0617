// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Copies by read and write, and lets someone take the bytes in who would otherwise read the copy again.
///
/// So they come from memory once, and the disk has work from the first piece on. A digest takes longer than
/// read and write together; for several files it is computed between them, as each CPU copies a file of its
/// own, and for a very large one beside them.
final class FollowedCopy {
  /// What is smaller is read again in no time.
  static let smallest: Int64 = 1 << 20
  /// From here on one CPU would be at work long after the others are done.
  private static let smallestWithThread: Int64 = 1 << 26
  private static let pieces = 4
  /// Little enough for a piece to be in the processor's cache when it is read for the second and third time.
  private static let pieceSize = 512 << 10

  private let memory = UnsafeMutableRawBufferPointer.allocate(
    byteCount: FollowedCopy.pieces * FollowedCopy.pieceSize, alignment: 4096)

  deinit { memory.deallocate() }

  /// Copies so many bytes; false if there are fewer, or `progress` says that it is over.
  func copy(
    from source: FD, to target: FD, _ size: Int64, _ follower: any CopyFollower, step: Int64,
    _ progress: (Int64) -> Bool
  ) throws(Errno) -> Bool {
    let ring = PieceRing(memory, pieces: Self.pieces)
    // Where there is none, the same piece is filled again and again.
    let thread =
      size < Self.smallestWithThread
      ? nil : try? JoinableThread(name: "follow") { ring.readAll { follower.append($0) } }
    defer {
      ring.end()
      thread?.join()
    }
    var position: Int64 = 0
    var reported: Int64 = 0
    while position < size {
      let piece = ring.free()
      let part = UnsafeMutableRawBufferPointer(rebasing: piece.prefix(Int(clamping: size - position)))
      let count = try source.read(into: part, at: position)
      if count == 0 { return false }
      let bytes = UnsafeRawBufferPointer(rebasing: part[..<count])
      if thread == nil { follower.append(bytes) } else { ring.handOver(count) }
      try target.writeAll(bytes, at: position)
      position += Int64(count)
      if position - reported >= step {
        // So the disk is at work while we are; in the end all of it has to be there.
        target.startWriting(reported, length: position - reported)
        reported = position
        guard progress(position) else { return false }
      }
    }
    return true
  }
}

extension FD {
  /// Writes all of it there.
  func writeAll(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(Errno) {
    var written = 0
    while written < bytes.count {
      written += try write(UnsafeRawBufferPointer(rebasing: bytes[written...]), at: offset + Int64(written))
    }
  }
}
