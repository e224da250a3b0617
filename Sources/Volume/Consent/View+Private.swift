// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

// A directory that takes its user's consent looks the same whatever is in it: it is there, and it is its
// user's. Where a user has put a link or a file in its place, that shows its kind, and nothing else either.

extension View {
  /// Whether nothing may be told of what is in a directory before its user has consented.
  func asks(_ node: NodeID) -> Bool {
    scope.hasPrivatePlaces && nodes.reach(of: node, in: scope).contains(.asks)
  }

  /// Takes from a `struct statx` what tells something.
  func hidePrivate(inStatx bytes: UnsafeMutableRawPointer) {
    // Attributes; size and blocks; the four times.
    for hidden in [8..<16, 40..<56, 64..<128] {
      UnsafeMutableRawBufferPointer(start: bytes + hidden.lowerBound, count: hidden.count)
        .initializeMemory(as: UInt8.self, repeating: 0)
    }
    let mode = UInt32(bytes.load(fromByteOffset: 28, as: UInt16.self))
    bytes.storeBytes(of: FileStatus.linksOfEmpty, toByteOffset: 16, as: UInt32.self)
    bytes.storeBytes(
      of: UInt16(truncatingIfNeeded: FileStatus.privateMode(for: mode)), toByteOffset: 28, as: UInt16.self)
  }
}

// A directory that leads to what an app may use has other things in it, too. Its size, its times and its
// number of links would tell of them.

extension View {
  /// Whether it is a directory of which an app sees only a part.
  func isOnTheWay(_ node: NodeID, _ status: FileStatus) -> Bool {
    guard gate.isApps, status.isDirectory, let position = nodes.with(node, { $0.position }) else {
      return false
    }
    return scope.hidesContents(of: position)
  }

  /// Takes from a `struct statx` of such a directory what tells something.
  func hideContents(inStatx bytes: UnsafeMutableRawPointer) {
    for hidden in [40..<56, 64..<128] {
      UnsafeMutableRawBufferPointer(start: bytes + hidden.lowerBound, count: hidden.count)
        .initializeMemory(as: UInt8.self, repeating: 0)
    }
    bytes.storeBytes(of: FileStatus.linksUnknown, toByteOffset: 16, as: UInt32.self)
  }
}

extension FileStatus {
  /// As filesystems have it that don't count the directories in a directory.
  fileprivate static let linksUnknown: UInt32 = 1

  /// The same of a directory without what tells of its contents.
  var withoutContents: FileStatus {
    var shown = self
    shown.st_nlink = numericCast(Self.linksUnknown)
    (shown.st_size, shown.st_blocks) = (0, 0)
    (shown.st_atim, shown.st_mtim, shown.st_ctim) = (timespec(), timespec(), timespec())
    return shown
  }
}

extension FileStatus {
  fileprivate static let linksOfEmpty: UInt32 = 2
  fileprivate static func privateMode(for mode: UInt32) -> UInt32 { mode & S_IFMT | 0o700 }

  /// The same without what tells something.
  var withoutPrivate: FileStatus {
    var shown = self
    shown.st_mode = Self.privateMode(for: st_mode)
    shown.st_nlink = numericCast(Self.linksOfEmpty)
    (shown.st_size, shown.st_blocks) = (0, 0)
    (shown.st_atim, shown.st_mtim, shown.st_ctim) = (timespec(), timespec(), timespec())
    return shown
  }
}
