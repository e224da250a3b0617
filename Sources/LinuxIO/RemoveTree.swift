// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

extension FD {
  /// Removes a child and all that it holds; follows no link and enters no other filesystem.
  ///
  /// It takes neither stack nor descriptors in proportion to the depth: a directory that is not empty is
  /// first moved to the top of what is being removed. Throws EXDEV, with part of it removed, where something
  /// is mounted inside.
  package func removeTree(_ name: Name) throws(Errno) {
    guard try status(of: name).isDirectory else { return try remove(name, directory: false) }
    let top = try openDirectoryToEmpty(name)
    var moved = 0
    while true {
      let entries = try top.fd.entries()
      if entries.isEmpty { break }
      for entry in entries {
        try entry.name.withName { (child) throws(Errno) in
          try top.fd.removeEntry(child) { (child) throws(Errno) in
            try top.fd.emptyDirectory(child, movingTo: top.fd, &moved)
          }
        }
      }
    }
    try remove(name, directory: true)
  }

  /// Removes a file, a link or an empty directory; leaves a directory that is not empty to `otherwise`.
  private func removeEntry(_ name: Name, otherwise: (Name) throws(Errno) -> Void) throws(Errno) {
    do throws(Errno) {
      try remove(name, directory: false)
      return
    } catch {
      guard error == .EISDIR || error == .EPERM, try status(of: name).isDirectory else { throw error }
    }
    do throws(Errno) {
      try remove(name, directory: true)
    } catch {
      guard error == .ENOTEMPTY || error == .EEXIST else { throw error }
      try otherwise(name)
    }
  }

  private func emptyDirectory(_ name: Name, movingTo top: FD, _ moved: inout Int) throws(Errno) {
    let directory = try openDirectoryToEmpty(name)
    for entry in try directory.fd.entries() {
      var number = moved
      try entry.name.withName { (child) throws(Errno) in
        try directory.fd.removeEntry(child) { (child) throws(Errno) in
          // Its own parent entry changes too, which needs the right to write in it.
          _ = try directory.fd.openDirectoryToEmpty(child)
          number = try directory.fd.move(child, to: top, number)
        }
      }
      moved = number
    }
    try remove(name, directory: true)
  }

  /// Gives a directory the first free name of our own in `top`.
  private func move(_ name: Name, to top: FD, _ start: Int) throws(Errno) -> Int {
    var number = start
    let renameNoReplace: UInt32 = 1
    while true {
      number += 1
      do throws(Errno) {
        try ".removing-\(number)".withName { (free) throws(Errno) in
          try rename(name, to: top, free, flags: renameNoReplace)
        }
        return number
      } catch {
        guard error == .EEXIST else { throw error }
      }
    }
  }

  private func openDirectoryToEmpty(_ name: Name) throws(Errno) -> OwnedFD {
    let directory = try child(name)
    // Its owner may have taken the rights away from himself; where they can't be given, what follows says
    // why.
    if try directory.fd.status().permissions & 0o700 != 0o700 { try? directory.fd.changeMode(0o700) }
    return try directory.fd.reopened(O_RDONLY | O_DIRECTORY)
  }
}
