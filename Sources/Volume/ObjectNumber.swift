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

  /// A number for the object among objects of several devices.
  ///
  /// It is never 0, and never has the highest bit: many programs keep such a number as a signed one.
  var shownBesideOthers: UInt64 {
    let ofDevice = (UInt64(device) &* 0x9e37_79b9_7f4a_7c15) & 0xffff_0000_0000_0000
    let shown = (inode ^ ofDevice) & UInt64(Int64.max)
    return shown == 0 ? 1 : shown
  }
}
