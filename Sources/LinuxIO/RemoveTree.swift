// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

extension FD {
  /// Removes a child and all that it holds; follows no link and enters no other filesystem.
  ///
  /// It takes neither stack nor descriptors in proportion to the depth: a directory that is not empty is
  /// first moved to the top of what is being removed. Throws EXDEV, with part of it removed, where something
  /// is mounted inside, and ENOTEMPTY where somebody keeps making things in it.
  package func removeTree(_ name: Name) throws(Errno) {
    try removeTree(name) { (directory) throws(Errno) in try directory.entries() }
  }

  /// The same with another way to list a directory.
  func removeTree(
    _ name: Name, listing list: (FD) throws(Errno) -> [(name: [UInt8], type: UInt8)]
  ) throws(Errno) {
    guard try status(of: name).isDirectory else { return try remove(name, directory: false) }
    let top = try openDirectoryToEmpty(name)
    var removal = TreeRemoval()
    while true {
      let entries = try list(top.fd)
      if entries.isEmpty { break }
      try removal.count(entries)
      for entry in entries {
        try entry.name.withName { (child) throws(Errno) in
          try top.fd.removeEntry(child) { (child) throws(Errno) in
            try top.fd.emptyDirectory(child, movingTo: top.fd, &removal, list)
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

  private func emptyDirectory(
    _ name: Name, movingTo top: FD, _ removal: inout TreeRemoval,
    _ list: (FD) throws(Errno) -> [(name: [UInt8], type: UInt8)]
  ) throws(Errno) {
    let directory = try openDirectoryToEmpty(name)
    for entry in try list(directory.fd) {
      var removed = removal
      try entry.name.withName { (child) throws(Errno) in
        try directory.fd.removeEntry(child) { (child) throws(Errno) in
          // Its own parent entry changes too, which needs the right to write in it.
          let found = try directory.fd.openDirectoryToEmpty(child)
          try removed.count(found.fd)
          try directory.fd.move(child, to: top, &removed)
        }
      }
      removal = removed
    }
    try remove(name, directory: true)
  }

  /// Gives a directory the first free name of our own in `top`.
  private func move(_ name: Name, to top: FD, _ removal: inout TreeRemoval) throws(Errno) {
    let renameNoReplace: UInt32 = 1
    while true {
      let free = removal.nextName()
      do throws(Errno) {
        return try free.withName { (free) throws(Errno) in
          try rename(name, to: top, free, flags: renameNoReplace)
        }
      } catch {
        guard error == .EEXIST else { throw error }
        try removal.nameIsTaken()
      }
    }
  }

  private func openDirectoryToEmpty(_ name: Name) throws(Errno) -> OwnedFD {
    let directory = try child(name)
    return try directory.fd.openedToEmpty()
  }

  private func openedToEmpty() throws(Errno) -> OwnedFD {
    // Its owner may have taken the rights away from himself; where they can't be given, what follows says
    // why.
    if try status().permissions & 0o700 != 0o700 { try? changeMode(0o700) }
    return try reopened(O_RDONLY | O_DIRECTORY)
  }

  /// Takes hold of a directory, if it is one and can be opened, to remove it by ``remove(held:named:)``.
  package func held(_ name: String) -> SharedFD? {
    guard let directory = try? openDirectory(name) else { return nil }
    return SharedFD(directory)
  }

  /// The same as ``remove(held:named:by:)``; does nothing if there is nothing of that name.
  package func remove(held directory: SharedFD?, named name: String) throws(Errno) {
    do throws(Errno) {
      guard let directory else { return try remove(name, directory: false) }
      try directory.use { (directory) throws(Errno) in try remove(held: directory, named: name) }
    } catch .ENOENT {
      return
    }
  }

  /// Removes a directory that we may have left under a name when we were stopped, with the files of some
  /// names in it; does nothing if there is none.
  ///
  /// Where others can rename things, its name does not say that it is ours. So only that goes which they
  /// could remove as well. ENOTEMPTY if there is anything else in it.
  package func removeLeft(_ name: String, with files: [String]) throws(Errno) {
    do throws(Errno) {
      let left = try child(name)
      guard try left.fd.status().isDirectory else { return try remove(name, directory: false) }
      let opened = try left.fd.openedToEmpty()
      for file in files {
        do throws(Errno) { try opened.fd.remove(file, directory: false) } catch .ENOENT { continue }
      }
      try remove(name, directory: true)
    } catch .ENOENT {
      return
    }
  }

  /// Removes a directory that is held, with all that it holds, or anything else that has a name here.
  ///
  /// Others may be able to rename what is here, and so to give a name to what they can't remove. So what a
  /// directory holds is reached by its own descriptor, and by a name only that goes which they could remove
  /// as well: an empty directory, and what is none. ESTALE if the directory is empty and has lost its name.
  package func remove(
    held directory: FD?, named name: some NameText,
    by removeTree: (_ name: [UInt8], _ parent: FD) throws(Errno) -> Void = { (name, parent) throws(Errno) in
      try parent.removeTree(name)
    }
  ) throws(Errno) {
    guard let directory else { return try remove(name, directory: false) }
    let opened = try directory.openedToEmpty()
    for entry in try opened.fd.entries() { try removeTree(entry.name, opened.fd) }
    guard try status(of: name).isSameObject(as: opened.fd.status()) else { throw .ESTALE }
    try remove(name, directory: true)
  }
}

/// How much of a tree that is being removed has been made since the removal began.
///
/// Whoever has a directory of it open can go on making things there. Each directory is listed once, and the
/// top until it is empty, so there is no end to that alone if new directories, or names in the top, come as
/// fast as they are removed.
private struct TreeRemoval {
  private var growth = TreeGrowth()
  private var isBegun = false
  /// The number in the last name of our own in the top, and when the top was last listed.
  private var moved = 0
  private var listed = 0
  /// How many names were there then, and how many were in the way since.
  private var known = 0
  private var taken = 0

  private static let prefix = Array(".removing-".utf8)

  /// Counts the names in the top that were not there at first, and that are not ours.
  mutating func count(_ entries: [(name: [UInt8], type: UInt8)]) throws(Errno) {
    defer { (listed, known, taken, isBegun) = (moved, entries.count, 0, true) }
    guard isBegun else { return }
    let strangers = entries.count { !isOurs($0.name) }
    try growth.add(strangers)
  }

  /// Counts a directory in which something is, if it was made since.
  mutating func count(_ directory: FD) throws(Errno) {
    // Where no time of birth is kept, it has not been moved yet.
    try growth.count(directory)
  }

  /// Another name of our own in the top, which may be taken.
  mutating func nextName() -> String {
    moved += 1
    return ".removing-\(moved)"
  }

  /// One of those that were there when the top was last listed, or a new one.
  mutating func nameIsTaken() throws(Errno) {
    taken += 1
    guard taken <= known else { return try growth.add(1) }
  }

  /// Whether it was moved there since the top was last listed.
  private func isOurs(_ name: [UInt8]) -> Bool {
    guard name.starts(with: Self.prefix),
      let number = Int(String(decoding: name.dropFirst(Self.prefix.count), as: UTF8.self))
    else { return false }
    return listed < number && number <= moved
  }
}
