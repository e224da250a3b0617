// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// When reading changes an access time.
///
/// Corresponds to the options of mount(8).
package struct AccessTimeRule: Sendable, Equatable {
  package enum Files: Sendable { case never, relative, always }

  /// Nil leaves it as it is on the filesystem below.
  package var files: Files?
  /// Whether listing a directory leaves its time alone.
  package var sparesDirectories = false

  package init() {}
}

/// A mount of a directory that is nobody's but ours, with its own rule for access times.
///
/// What is opened below it, by name or by handle, follows its rule; so does what the kernel opens for
/// passthrough.
package final class PrivateMount: Sendable {
  /// As long as this is open the mount is whole.
  private let mount: OwnedFD
  private let opened: OwnedFD

  /// Its root, open for reading.
  package var root: FD { opened.fd }

  /// Takes CAP_SYS_ADMIN.
  ///
  /// Corresponds to `open_tree(2)` and `mount_setattr(2)`.
  package init(of directory: FD, _ rule: AccessTimeRule) throws(Errno) {
    let flags = UInt32(CLX_OPEN_TREE_CLONE | O_CLOEXEC | CLX_AT_EMPTY_PATH)
    let mount = OwnedFD(owning: try check(clx_open_tree(directory.raw, Name.empty.bytes, flags)))
    var set: UInt64 = 0
    var clear: UInt64 = 0
    if let files = rule.files {
      clear = UInt64(CLX_MOUNT_ATTR_ATIME)
      switch files {
      case .never: set = UInt64(CLX_MOUNT_ATTR_NOATIME)
      case .relative: set = UInt64(CLX_MOUNT_ATTR_RELATIME)
      case .always: set = UInt64(CLX_MOUNT_ATTR_STRICTATIME)
      }
    }
    if rule.sparesDirectories { set |= UInt64(CLX_MOUNT_ATTR_NODIRATIME) }
    try check(
      clx_mount_setattr(mount.fd.raw, Name.empty.bytes, UInt32(CLX_AT_EMPTY_PATH), set, clear))
    opened = try mount.fd.open(Name.here, O_RDONLY | O_DIRECTORY)
    self.mount = mount
  }

  /// A name of the same directory on a mount of its own that leaves access times alone; the mount lasts for
  /// as long as anything that was found through it is open.
  package static func noatime(_ directory: FD) throws(Errno) -> OwnedFD {
    let flags = UInt32(CLX_OPEN_TREE_CLONE | O_CLOEXEC | CLX_AT_EMPTY_PATH)
    let mount = OwnedFD(owning: try check(clx_open_tree(directory.raw, Name.empty.bytes, flags)))
    try check(
      clx_mount_setattr(
        mount.fd.raw, Name.empty.bytes, UInt32(CLX_AT_EMPTY_PATH), UInt64(CLX_MOUNT_ATTR_NOATIME),
        UInt64(CLX_MOUNT_ATTR_ATIME)))
    return mount
  }
}
