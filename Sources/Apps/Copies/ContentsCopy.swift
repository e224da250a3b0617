// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// Copies what is in files, in the cheapest way that the two filesystems allow; which that is shows at the
/// first file.
package final class ContentsCopy {
  private var canShare = true
  private var canCopyInKernel = true
  private let followed = FollowedCopy()
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)

  package init() {}

  deinit { buffer.deallocate() }

  /// Smaller files take one read and one write.
  private static let small = 1 << 16
  /// How much is copied between two calls of `progress`.
  private static let step = 1 << 24

  enum Outcome {
    /// It has become shorter, or `progress` said that it is over.
    case cutShort
    case whole
    /// It is whole, and whoever was to follow has had all of it.
    case followed
  }

  /// Copies a file as long as it was when `status` was taken; EBUSY if it has become shorter.
  package func copy(from source: FD, _ status: FileStatus, to target: FD) throws(Errno) {
    if case .cutShort = try copy(from: source, status, to: target, progress: { _ in true }) { throw .EBUSY }
  }

  /// Copies a file as long as it was when `status` was taken.
  ///
  /// `follower` gets what is in a large file where that passes through our memory; where it does not, reading
  /// the copy costs less.
  func copy(
    from source: FD, _ status: FileStatus, to target: FD, follower: (any CopyFollower)? = nil,
    progress: (Int64) -> Bool
  ) throws(Errno) -> Outcome {
    let size = Int64(status.st_size)
    guard size > 0 else { return .whole }
    if canShare {
      do throws(Errno) {
        try source.shareContents(with: target)
        return try target.status().st_size >= status.st_size ? .whole : .cutShort
      } catch .EOPNOTSUPP, .ENOTTY, .EXDEV, .EINVAL, .ENOSYS, .EPERM {
        canShare = false
      }
    }
    // Blocks of 512 bytes, whatever the filesystem's own are.
    if Int64(status.st_blocks) < size / 512 {
      return try copyAroundHoles(from: source, to: target, size, progress) ? .whole : .cutShort
    }
    if let follower, size >= FollowedCopy.smallest {
      try Self.makeRoom(size, in: target)
      return try followed.copy(from: source, to: target, size, follower, step: Int64(Self.step), progress)
        ? .followed : .cutShort
    }
    return try copyRange(from: source, to: target, 0..<size, progress) ? .whole : .cutShort
  }

  /// Has all of a large file's blocks allocated at once where they would be reserved one by one as they are
  /// written, which takes ext4 as long as the writing itself.
  private static func makeRoom(_ size: Int64, in target: FD) throws(Errno) {
    // Elsewhere it gains nothing, or keeps the filesystem from compressing the file.
    guard try target.filesystemKind() == .ext4 else { return }
    do throws(Errno) {
      try target.allocate(mode: 0, offset: 0, length: size)
    } catch .EOPNOTSUPP, .ENOSYS {
      // A filesystem of that family that has no extents.
    }
  }

  private func copyAroundHoles(
    from source: FD, to target: FD, _ size: Int64, _ progress: (Int64) -> Bool
  ) throws(Errno) -> Bool {
    var position: Int64 = 0
    while position < size {
      let start: Int64
      do throws(Errno) {
        start = try source.seek(position, CLX_SEEK_DATA)
      } catch .ENXIO {
        // Nothing but a hole up to the end.
        break
      } catch .EINVAL {
        // A filesystem that knows nothing of holes.
        return try copyRange(from: source, to: target, position..<size, progress)
      }
      guard start < size else { break }
      // A filesystem of someone's own may answer anything.
      guard start >= position else { return false }
      let end = min(try source.seek(start, CLX_SEEK_HOLE), size)
      guard end > start else { return false }
      guard try copyRange(from: source, to: target, start..<end, progress) else { return false }
      position = end
    }
    guard try source.status().st_size >= size else { return false }
    try target.truncateOpen(to: Int(size))
    return true
  }

  private func copyRange(
    from source: FD, to target: FD, _ range: Range<Int64>, _ progress: (Int64) -> Bool
  ) throws(Errno) -> Bool {
    var position = range.lowerBound
    var reported = position
    while position < range.upperBound {
      let wanted = Int(min(range.upperBound - position, Int64(Self.step)))
      let copied = try copyPart(from: source, to: target, at: position, wanted)
      if copied == 0 { return false }
      position += Int64(copied)
      if position - reported >= Int64(Self.step) {
        // So the disk is at work while we are; in the end all of it has to be there.
        target.startWriting(reported, length: position - reported)
        reported = position
        guard progress(position) else { return false }
      }
    }
    return true
  }

  private func copyPart(
    from source: FD, to target: FD, at position: Int64, _ wanted: Int
  ) throws(Errno) -> Int {
    if canCopyInKernel, wanted > Self.small {
      do throws(Errno) {
        return try source.copyRange(at: position, to: target, at: position, length: wanted, flags: 0)
      } catch .EXDEV, .EINVAL, .EOPNOTSUPP, .ENOSYS, .EPERM {
        canCopyInKernel = false
      }
    }
    let part = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(wanted))
    let count = try source.read(into: part, at: position)
    try target.writeAll(UnsafeRawBufferPointer(rebasing: part[..<count]), at: position)
    return count
  }
}
