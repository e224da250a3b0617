// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux

extension FD {
  /// The kind of filesystem that this descriptor lies on.
  ///
  /// Corresponds to `f_type` of `fstatfs(2)`.
  package func filesystemKind() throws(Errno) -> FilesystemKind {
    var type: UInt64 = 0
    try check(clx_filesystem_type(raw, &type))
    return FilesystemKind(magic: type)
  }
}

/// A kind of filesystem, by the magic number in its superblock.
package struct FilesystemKind: Equatable, Sendable {
  package let magic: UInt64

  package init(magic: UInt64) { self.magic = magic }

  /// And what it has grown from, ext2 and ext3, which have the same number.
  package static let ext4 = FilesystemKind(magic: 0xef53)
  package static let xfs = FilesystemKind(magic: 0x5846_5342)
  package static let btrfs = FilesystemKind(magic: 0x9123_683e)
  package static let fuse = FilesystemKind(magic: 0x6573_5546)
  package static let tmpfs = FilesystemKind(magic: 0x0102_1994)
  /// Where processes are shown: /proc.
  package static let processes = FilesystemKind(magic: 0x9fa0)
  /// Where pipes without names are, as a shell makes them.
  package static let pipes = FilesystemKind(magic: 0x5049_5045)

  /// Whether a server, or another program, judges who may do what, by whom it takes the caller for.
  package var isRemote: Bool {
    ["nfs", "cifs", "smb2", "ceph", "9p", "fuse", "afs", "lustre"].contains(name)
  }

  /// The name that `mount(8)` uses, or the number for one that is not on the list.
  package var name: String { Self.names[magic] ?? "0x" + String(magic, radix: 16) }

  private static let names: [UInt64: String] = [
    0xef53: "ext4", 0x5846_5342: "xfs", 0x9123_683e: "btrfs", 0x0102_1994: "tmpfs", 0x794c_7630: "overlay",
    0x6573_5546: "fuse", 0x6969: "nfs", 0xff53_4d42: "cifs", 0xfe53_4d42: "smb2", 0x00c3_6400: "ceph",
    0x2fc1_2fc1: "zfs", 0x4d44: "vfat", 0x2011_bab0: "exfat", 0xf2f5_2010: "f2fs", 0x0102_1997: "9p",
    0x5346_414f: "afs", 0x0bd0_0bd0: "lustre", 0xca45_1a4e: "bcachefs", 0x7371_7368: "squashfs",
    0xe0f5_e1e2: "erofs", 0x9660: "iso9660",
  ]
}
