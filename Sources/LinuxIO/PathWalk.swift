// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// A path that is walked name by name as the kernel does it, so that each step can be judged.
///
/// Whoever may rename a link, or what is in a directory on the way, decides where the path leads. What is
/// judged here is what was walked: nothing is looked up a second time.
package enum PathWalk {
  /// What a step is about.
  package enum Step {
    /// A directory in which a name is looked up.
    case directory(FD, FileStatus)
    /// A link that is followed, opened with `O_PATH`.
    case link(FD, FileStatus)
  }

  /// As many links as the kernel follows.
  private static let maxLinks = 40

  /// Opens what a path leads to, with `O_PATH`; `judge` refuses a step by what it throws.
  package static func open(
    _ path: String, _ judge: (Step) throws(Errno) -> Void
  ) throws(Errno) -> OwnedFD {
    let slash = UInt8(ascii: "/")
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty else { throw .ENOENT }
    // The next name is the last one.
    var names: [[UInt8]] = bytes.split(separator: slash).reversed().map { Array($0) }
    if bytes.last == slash { names.insert(Array(".".utf8), at: 0) }
    var current = try FD.cwd.open(bytes.first == slash ? "/" : ".", pathOnly | O_DIRECTORY)
    var links = 0
    while let name = names.popLast() {
      let status = try current.fd.status()
      guard status.isDirectory else { throw .ENOTDIR }
      try judge(.directory(current.fd, status))
      // As a directory first, or nobody would mount what is mounted when it is needed. It is not asked
      // anything until a name is looked up in it: it may be a mount whose server does not answer.
      do throws(Errno) {
        current = try open(name, pathOnly | O_DIRECTORY, in: current.fd)
        continue
      } catch .ENOTDIR, .ELOOP {}
      let next = try open(name, pathOnly, in: current.fd)
      let found = try next.fd.status()
      guard found.isSymlink else {
        current = next
        continue
      }
      links += 1
      guard links <= maxLinks else { throw .ELOOP }
      try judge(.link(next.fd, found))
      if try next.fd.filesystemKind() == .processes {
        // Its text does not say where the kernel leads from it.
        current = try name.withName { (name) throws(Errno) in try current.fd.openFollowing(name, pathOnly) }
        continue
      }
      let target = try next.fd.linkTarget()
      guard !target.isEmpty else { throw .ENOENT }
      names += target.split(separator: slash).reversed().map { Array($0) }
      if target.first == slash { current = try FD.cwd.open("/", pathOnly | O_DIRECTORY) }
    }
    return current
  }

  private static func open(_ name: [UInt8], _ flags: Int32, in directory: FD) throws(Errno) -> OwnedFD {
    try name.withName { (name) throws(Errno) in try directory.open(name, flags) }
  }
}
