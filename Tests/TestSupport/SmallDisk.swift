// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// A filesystem in memory, for what only a full or a read-only disk shows; root only.
package final class SmallDisk: Sendable {
  package let directory: TemporaryDirectory

  /// Where it is mounted; it goes away with this object.
  package var path: String { directory.appending("disk") }

  package init(bytes: Int, files: Int) throws(Errno) {
    guard let temporary = try? TemporaryDirectory() else { throw .EIO }
    directory = temporary
    guard (try? temporary.makeDirectory("disk")) != nil else { throw .EIO }
    let options = "size=\(bytes),nr_inodes=\(files),mode=0755"
    try check(mount("tmpfs", directory.appending("disk"), "tmpfs", 0, options))
  }

  /// Makes it read-only, or writable again.
  package func remount(readOnly: Bool) throws(Errno) {
    let flags = UInt(MS_REMOUNT) | (readOnly ? UInt(MS_RDONLY) : 0)
    // A program that another test starts at this moment has open what this one had, until it runs.
    var error: Errno?
    _ = eventually {
      error = mount("tmpfs", path, "tmpfs", flags, nil) == 0 ? nil : .last
      return error != .EBUSY
    }
    if let error { throw error }
  }
}
