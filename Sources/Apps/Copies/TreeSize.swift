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
    do throws(Errno) { try size.add(listing.fd, limits, depth: 0) } catch .EOVERFLOW {
      // There are too many, and it is not known how many.
    }
    return size
  }

  private mutating func add(_ directory: FD, _ limits: TreeCopy.Limits, depth: Int) throws(Errno) {
    guard depth < limits.depth else { return }
    // Each level on the way has few names in memory.
    var listing = try directory.nextEntries()
    while true {
      for entry in listing.entries { try add(entry, in: directory, limits, depth: depth) }
      if listing.isEnd { return }
      listing = try directory.nextEntries()
    }
  }

  private mutating func add(
    _ entry: (name: [UInt8], type: UInt8), in directory: FD, _ limits: TreeCopy.Limits, depth: Int
  ) throws(Errno) {
    guard entries < limits.entries else { throw .EOVERFLOW }
    entries += 1
    try entry.name.withName { (name) throws(Errno) in
      do throws(Errno) {
        // Some filesystems don't say in a listing what an entry is.
        var isDirectory = entry.type == UInt8(DT_DIR)
        if entry.type == UInt8(DT_UNKNOWN) { isDirectory = try directory.status(of: name).isDirectory }
        if isDirectory {
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
