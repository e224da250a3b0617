// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A disk that is made of a file; it goes when nobody has it open any more.
package enum LoopDevice {
  /// Corresponds to `losetup(8)`, with `LOOP_CONFIGURE`.
  package static func make(of file: FD, isReadOnly: Bool) throws(Errno) -> OwnedFD {
    let (getFree, configure): (UInt, UInt) = (0x4c82, 0x4c0a)
    let control = try FD.cwd.openFollowing("/dev/loop-control", O_RDWR)
    // Somebody else may be faster.
    for _ in 0..<16 {
      let number = try check(clx_ioctl(control.fd.raw, getFree, nil))
      let device = try FD.cwd.openFollowing("/dev/loop\(number)", isReadOnly ? O_RDONLY : O_RDWR)
      // struct loop_config {fd u32, block_size u32, struct loop_info64, reserved u64[8]}.
      var config = [UInt8](repeating: 0, count: 304)
      let (flagsOffset, readOnly, autoClear): (Int, UInt32, UInt32) = (60, 1, 4)
      let done = config.withUnsafeMutableBytes { bytes in
        bytes.storeBytes(of: UInt32(bitPattern: file.raw), as: UInt32.self)
        bytes.storeBytes(
          of: autoClear | (isReadOnly ? readOnly : 0), toByteOffset: flagsOffset, as: UInt32.self)
        return clx_ioctl(device.fd.raw, configure, bytes.baseAddress) == 0
      }
      if done { return device }
      let error = Errno.last
      guard error == .EBUSY else { throw error }
    }
    throw .EBUSY
  }
}
