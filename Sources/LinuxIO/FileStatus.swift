// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import CLinux

/// What `stat(2)` tells of an object.
///
/// A structure of our own: C's has a copy in every C module that includes its header, and which of them the
/// compiler adds our properties to depends on what was compiled before. The names are those that every manual
/// page uses.
// swift-format-ignore: AlwaysUseLowerCamelCase
package struct FileStatus: Sendable {
  package var st_dev: dev_t = 0
  package var st_ino: ino_t = 0
  package var st_nlink: nlink_t = 0
  package var st_mode: FileMode = 0
  package var st_uid: uid_t = 0
  package var st_gid: gid_t = 0
  package var st_rdev: dev_t = 0
  package var st_size: off_t = 0
  package var st_blksize: blksize_t = 0
  package var st_blocks: blkcnt_t = 0
  package var st_atim = FileTime()
  package var st_mtim = FileTime()
  package var st_ctim = FileTime()

  package init() {}

  package init(_ status: stat) {
    st_dev = status.st_dev
    st_ino = status.st_ino
    st_nlink = status.st_nlink
    st_mode = status.st_mode
    st_uid = status.st_uid
    st_gid = status.st_gid
    st_rdev = status.st_rdev
    st_size = status.st_size
    st_blksize = status.st_blksize
    st_blocks = status.st_blocks
    st_atim = status.st_atim
    st_mtim = status.st_mtim
    st_ctim = status.st_ctim
  }

  /// The type bits of the mode alone.
  package var type: FileMode { st_mode & FileMode(S_IFMT) }
  /// The permission bits of the mode, set-id and sticky bits included.
  package var permissions: FileMode { st_mode & 0o7777 }
  package var isDirectory: Bool { type == FileMode(S_IFDIR) }
  package var isRegular: Bool { type == FileMode(S_IFREG) }
  package var isSymlink: Bool { type == FileMode(S_IFLNK) }

  /// Whether it belongs to this process's user, and its mode lets nobody else change it; nor does an ACL of
  /// POSIX then, whose mask the mode shows.
  package var isOursAlone: Bool { st_uid == ProcessID.user && permissions & 0o022 == 0 }

  /// When its contents were changed, in nanoseconds since 1970.
  package var modifiedNanoseconds: Int64 { st_mtim.nanoseconds }

  /// Whether both are of one object; as long as somebody has it open, no other gets its numbers.
  package func isSameObject(as other: FileStatus) -> Bool {
    st_ino == other.st_ino && st_dev == other.st_dev
  }
}
