// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc

// Paths that are ours, or were looked at before, below an open directory. They are walked name by name: no
// link is followed, no other filesystem entered, and nothing above is reached.

extension FD {
  /// Opens the directory at a path below this one; this one once more, if the path is empty.
  package func openDirectory(at path: String) throws(Errno) -> OwnedFD {
    try openDirectory(at: path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) })
  }

  /// Opens a directory below this one by the names on the way to it.
  package func openDirectory(at names: some Sequence<[UInt8]>) throws(Errno) -> OwnedFD {
    // Not a duplicate, which would share its position with us.
    var directory = try reopened(O_RDONLY | O_DIRECTORY)
    for name in names {
      directory = try name.withName { (name) throws(Errno) in
        guard name.isComponent else { throw .EINVAL }
        return try directory.fd.openDirectory(name)
      }
    }
    return directory
  }

  /// Opens a child directory, and makes it if it is missing.
  ///
  /// Only then: `mkdir(2)` waits for a filesystem that takes no changes just now, also where the name is
  /// taken.
  package func openDirectory(_ name: some NameText, makingWith mode: FileMode) throws(Errno) -> OwnedFD {
    do throws(Errno) { return try openDirectory(name) } catch .ENOENT {}
    do throws(Errno) { try makeDirectory(name, mode: mode) } catch .EEXIST {}
    return try openDirectory(name)
  }

  /// Makes a directory that is its maker's alone, or that of a mode, and opens it.
  ///
  /// EEXIST if it is another one by then: whoever may write in this directory can have exchanged it, and what
  /// is done to it is not meant for that.
  package func makeAndOpenDirectory(
    _ name: some NameText, mode: FileMode = 0o700
  ) throws(Errno) -> OwnedFD {
    try makeDirectory(name, mode: mode)
    let made = try openDirectory(name)
    let status = try made.fd.status()
    guard status.st_uid == ProcessID.user, status.permissions & 0o777 & ~mode == 0,
      try made.fd.entries().isEmpty
    else { throw .EEXIST }
    return made
  }

  /// Lends the directory that the last name of a path is in, and that name; what has it is not looked at.
  package func withParent<Result: ~Copyable>(
    of path: String, _ body: (FD, String) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let (above, name) = path.splitAtName
    guard !name.isEmpty else { throw .EINVAL }
    let parent = try openDirectory(at: above)
    return try body(parent.fd, name)
  }

  /// What is at a path below this one.
  package func status(at path: String) throws(Errno) -> FileStatus {
    try withParent(of: path) { (parent, name) throws(Errno) in
      let status = try parent.status(of: name)
      let isOthers = try name.withName { (name) throws(Errno) in RedirectedNames.isOthers(name, in: parent) }
      if isOthers, !status.isSymlink { throw .ENOMEDIUM }
      guard status.isSymlink, let target = RedirectedNames.target(of: Array(name.utf8), in: parent) else {
        return status
      }
      // Whose home it is, the kernel remembers: its disk or server may not answer.
      return try target.root.use { (root) throws(Errno) in try root.statusInMemory() }
    }
  }

  /// Whether a name is taken, as far as that can be told.
  package func has(_ name: some NameText) -> Bool { (try? status(of: name)) != nil }
}

extension String {
  /// The path of the directory that the last name of a path is in, without a slash at either end, and that
  /// name.
  package var splitAtName: (above: String, name: String) {
    var names = parts(between: "/")
    let name = names.popLast().map(String.init) ?? ""
    return (names.joined(separator: "/"), name)
  }
}
