// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// What is in a directory whose display name is wanted, as far as whoever wants it may look.
package struct DirectoryContents {
  /// Whether what has a path below the directory is a directory; nil if there is nothing.
  let isDirectory: (_ path: [String]) -> Bool?
  /// The bytes of a file; nil if it is none, is longer, or can't be read.
  let read: (_ path: [String], _ limit: Int) -> [UInt8]?

  package init(
    isDirectory: @escaping (_ path: [String]) -> Bool?,
    read: @escaping (_ path: [String], _ limit: Int) -> [UInt8]?
  ) {
    self.isDirectory = isDirectory
    self.read = read
  }

  /// Those of an open directory, which must stay open meanwhile; no link in it is followed.
  package init(of directory: FD) {
    self.init { path in
      (try? directory.status(at: path.joined(separator: "/")))?.isDirectory
    } read: { path, limit in
      try? directory.withParent(of: path.joined(separator: "/")) { (parent, name) throws(Errno) -> [UInt8]? in
        let file = try parent.openToExamine(name)
        guard try file.fd.status().isRegular else { return nil }
        let bytes = try file.fd.readToEnd(limit: limit + 1)
        return bytes.count > limit ? nil : bytes
      }
    }
  }
}
