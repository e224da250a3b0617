// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// What a disk is formatted with, and by what it is told from every other disk.
package struct DiskFormat: Equatable, Sendable {
  package enum Kind: String, Sendable, CaseIterable {
    case ext4, xfs, btrfs, f2fs, ntfs, exfat, vfat, iso9660, squashfs
  }

  package let kind: Kind
  /// The number that it was given when it was formatted; empty where there is none.
  package let identity: [UInt8]

  /// How much of a disk has to be read.
  private static let length = 0x10000 + 0x100

  /// Nil for what is not known.
  package static func read(_ disk: FD) -> DiskFormat? {
    var start = [UInt8](repeating: 0, count: length)
    var filled = 0
    start.withUnsafeMutableBytes { bytes in
      while filled < length,
        let count = try? disk.read(
          into: UnsafeMutableRawBufferPointer(rebasing: bytes[filled...]), at: Int64(filled)), count > 0
      { filled += count }
    }
    return DiskFormat(start[..<filled])
  }

  /// `start` is what the disk begins with.
  package init?(_ start: ArraySlice<UInt8>) {
    func bytes(_ offset: Int, _ count: Int) -> [UInt8] {
      Array(start.dropFirst(offset).prefix(count))
    }
    func has(_ text: String, at offset: Int) -> Bool {
      bytes(offset, text.utf8.count).elementsEqual(text.utf8)
    }
    let found: (Kind, [UInt8])? =
      if has("XFSB", at: 0) {
        (.xfs, bytes(32, 16))
      } else if has("NTFS    ", at: 3) {
        (.ntfs, bytes(0x48, 8))
      } else if has("EXFAT   ", at: 3) {
        (.exfat, bytes(0x64, 4))
      } else if has("hsqs", at: 0) {
        (.squashfs, bytes(8, 4))
      } else if bytes(1080, 2) == [0x53, 0xef] {
        (.ext4, bytes(1024 + 0x68, 16))
      } else if bytes(1024, 4) == [0x10, 0x20, 0xf5, 0xf2] {
        (.f2fs, bytes(1024 + 108, 16))
      } else if has("_BHRfS_M", at: 0x10040) {
        (.btrfs, bytes(0x10020, 16))
      } else if has("CD001", at: 32769) {
        (.iso9660, bytes(32768 + 813, 17))
      } else if has("FAT32   ", at: 82) {
        (.vfat, bytes(67, 4))
      } else if has("FAT16   ", at: 54) || has("FAT12   ", at: 54) {
        (.vfat, bytes(39, 4))
      } else {
        nil
      }
    guard let (kind, identity) = found else { return nil }
    self.kind = kind
    self.identity = identity
  }
}

extension DiskFormat.Kind {
  /// Whether files have owners there.
  package var keepsOwners: Bool {
    switch self {
    case .ext4, .xfs, .btrfs, .f2fs, .squashfs: true
    case .ntfs, .exfat, .vfat, .iso9660: false
    }
  }

  /// Whether nothing on it can be changed.
  package var isReadOnly: Bool { self == .iso9660 || self == .squashfs }
}
