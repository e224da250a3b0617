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

  /// One of ext4, of which a share is kept for root.
  package init(ext4 megabytes: Int, percentKeptForRoot: Int) throws {
    directory = try TemporaryDirectory(mode: 0o755)
    try directory.makeDirectory("disk")
    let made = try Program.run([
      "sh", "-ec",
      """
      cd "$0"; truncate -s \(megabytes)M image; mkfs.ext4 -qF -m \(percentKeptForRoot) image
      mount -o loop image disk
      """, directory.path,
    ])
    guard made.status == 0 else { throw MountedStore.Failure(words: made.errors) }
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
