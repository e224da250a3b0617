// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// An object, whoever asks and by whatever name.
///
/// Its number is given to another one when it is gone: for what may be taken for true when it is not.
struct ObjectNumber: Hashable, Sendable {
  let inode: UInt64
  let device: UInt32

  init(inode: UInt64, device: UInt32) {
    self.inode = inode
    self.device = device
  }

  init(_ status: FileStatus) {
    inode = UInt64(status.st_ino)
    device = UInt32(truncatingIfNeeded: status.st_dev)
  }
}
