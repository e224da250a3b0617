// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A mount that has no place yet: whoever has its descriptor gives it one, in a namespace of theirs.
///
/// It ends with its descriptor, unless it has got a place by then.
package enum DetachedMount {
  /// What may be done through a mount.
  package struct Limits: OptionSet, Sendable {
    package let rawValue: UInt64
    package init(rawValue: UInt64) { self.rawValue = rawValue }

    package static let readOnly = Limits(rawValue: UInt64(CLX_MOUNT_ATTR_RDONLY))
    package static let noSetUserID = Limits(rawValue: UInt64(CLX_MOUNT_ATTR_NOSUID))
    package static let noDevices = Limits(rawValue: UInt64(CLX_MOUNT_ATTR_NODEV))
    package static let noPrograms = Limits(rawValue: UInt64(CLX_MOUNT_ATTR_NOEXEC))
  }

  /// Makes a filesystem of a type, with options of its own.
  ///
  /// Corresponds to `fsopen(2)`, `fsconfig(2)` and `fsmount(2)`.
  package static func make(
    type: String, options: [(key: String, value: String)], flags: [String] = [], _ limits: Limits
  ) throws(Errno) -> OwnedFD {
    let context = try type.withName { (type) throws(Errno) in
      OwnedFD(owning: try check(clx_fsopen(type.bytes)))
    }
    for (key, value) in options {
      try key.withName { (key) throws(Errno) in
        try value.withName { (value) throws(Errno) in
          _ = try check(
            clx_fsconfig(context.fd.raw, UInt32(CLX_FSCONFIG_SET_STRING), key.bytes, value.bytes))
        }
      }
    }
    for flag in flags {
      try flag.withName { (flag) throws(Errno) in
        _ = try check(clx_fsconfig(context.fd.raw, UInt32(CLX_FSCONFIG_SET_FLAG), flag.bytes, nil))
      }
    }
    try check(clx_fsconfig(context.fd.raw, UInt32(CLX_FSCONFIG_CMD_CREATE), nil, nil))
    return OwnedFD(owning: try check(clx_fsmount(context.fd.raw, limits.rawValue)))
  }

  /// A second mount of what a descriptor names, with other limits; what is mounted in it comes along only if
  /// it `isWhole`.
  ///
  /// Corresponds to `open_tree(2)` and `mount_setattr(2)`.
  package static func copy(
    of directory: FD, isWhole: Bool = false, adding: Limits = [], removing: Limits = []
  ) throws(Errno) -> OwnedFD {
    let recursive = isWhole ? CLX_AT_RECURSIVE : 0
    let flags = UInt32(CLX_OPEN_TREE_CLONE | O_CLOEXEC | CLX_AT_EMPTY_PATH | recursive)
    let mount = OwnedFD(owning: try check(clx_open_tree(directory.raw, Name.empty.bytes, flags)))
    try change(mount.fd, adding: adding, removing: removing)
    return mount
  }

  /// Gives a mount, which a descriptor names, other limits.
  ///
  /// Corresponds to `mount_setattr(2)`.
  package static func change(
    _ mount: FD, adding: Limits = [], removing: Limits = []
  ) throws(Errno) {
    try check(
      clx_mount_setattr(
        mount.raw, Name.empty.bytes, UInt32(CLX_AT_EMPTY_PATH), adding.rawValue, removing.rawValue))
  }
}

extension FD {
  /// Gives a mount, which this is, a place: over the directory that another descriptor names.
  ///
  /// Corresponds to `move_mount(2)`.
  package func attach(over directory: FD) throws(Errno) {
    try check(clx_move_mount(raw, directory.raw, Name.empty.bytes))
  }

  /// The device of the filesystem that this lies on, by what the kernel remembers: a filesystem that hangs is
  /// not asked.
  package func deviceInMemory() throws(Errno) -> DeviceNumber {
    let dontSync: Int32 = 0x4000
    var status = clx_statx()
    try check(clx_statx(raw, Name.empty.bytes, CLX_AT_EMPTY_PATH | dontSync, 0, &status))
    return DeviceNumber(major: status.stx_dev_major, minor: status.stx_dev_minor)
  }

  /// Whether this is a connection to the kernel's FUSE, by what the kernel remembers: a filesystem that hangs
  /// is not asked.
  package var isKnownFuseDevice: Bool {
    let dontSync: Int32 = 0x4000
    let typeOnly: UInt32 = 1
    var status = clx_statx()
    let flags = CLX_AT_EMPTY_PATH | dontSync
    guard clx_statx(raw, Name.empty.bytes, flags, typeOnly, &status) == 0 else { return false }
    return UInt32(status.stx_mode) & 0o170000 == 0o020000 && status.stx_rdev_major == 10
      && status.stx_rdev_minor == 229
  }
}
