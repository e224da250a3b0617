// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// How much there is to copy, as it is now.
package struct TreeSize: Equatable, Sendable {
  package var entries = 1
  package var bytes: Int64 = 0

  /// Walks through a directory that is open for reading; follows no link and enters no other filesystem.
  ///
  /// Counts only, and gives up where `limits` would: what is in the way, the copy says by name.
  package static func measured(_ top: FD, _ limits: TreeCopy.Limits = .init()) throws(Errno) -> TreeSize {
    var size = TreeSize()
    let listing = try top.reopened(O_RDONLY | O_DIRECTORY)
    try size.add(listing.fd, limits, depth: 0)
    return size
  }

  private mutating func add(_ directory: FD, _ limits: TreeCopy.Limits, depth: Int) throws(Errno) {
    guard depth < limits.depth else { return }
    let found: [(name: [UInt8], type: UInt8)]
    do throws(Errno) { found = try directory.entries(atMost: limits.entries) } catch .EOVERFLOW {
      return entries = limits.entries
    }
    for entry in found {
      guard entries < limits.entries else { return }
      entries += 1
      try entry.name.withName { (name) throws(Errno) in
        do throws(Errno) {
          if entry.type == UInt8(DT_DIR) {
            let child = try directory.openDirectoryToExamine(name)
            return try add(child.fd, limits, depth: depth + 1)
          }
          let status = try directory.status(of: name)
          // Files with holes can be as long as a number can say.
          if status.isRegular { bytes = bytes.adding(clamped: max(0, Int64(status.st_size))) }
        } catch .ENOENT, .ENOTDIR, .ELOOP, .EXDEV, .EACCES {
          // It was changed just now, or can't be copied.
        }
      }
    }
  }
}
