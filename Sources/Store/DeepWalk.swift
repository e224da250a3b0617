// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// A walk through all that is below a directory; never through a link or into another filesystem.
///
/// Users can make trees as deep as they like: the walk takes a descriptor or two, and opens each directory
/// once.
package struct DeepWalk {
  /// Something that the walk has come to.
  package struct Entry {
    package let name: [UInt8]
    /// As in `readdir(3)`.
    package let type: UInt8
    package let directory: FD
    /// The name on the way to it that comes first; its own where it is at the top.
    package let first: [UInt8]
    /// How many directories it is below the one where the walk begins.
    package let depth: Int
    fileprivate let above: () -> [[UInt8]]

    /// The names on the way to it, and its own.
    package var path: [[UInt8]] { above() + [name] }
  }

  /// Looks at something, and says whether to go into it.
  package typealias Look = (Entry) throws(Errno) -> Bool

  /// A directory on the way down, and which of those in it are to be visited still.
  private struct Level {
    let name: [UInt8]
    let status: FileStatus
    var directories: [[UInt8]] = []

    func isFound(in directory: FD) -> Bool { (try? directory.status())?.isSameObject(as: status) == true }
  }

  private var levels: [Level] = []

  /// Shows all that is below a directory to `look`, what is in a directory after the directory itself.
  package static func through(_ root: FD, _ look: Look) throws(Errno) {
    var walk = DeepWalk()
    try walk.run(root, look)
  }

  private mutating func run(_ root: FD, _ look: Look) throws(Errno) {
    var here = try root.reopened(O_RDONLY | O_DIRECTORY)
    levels = [try level(of: here.fd, named: [], look)]
    while var level = levels.popLast() {
      if let name = level.directories.popLast() {
        levels.append(level)
        guard let next = try? here.fd.openDirectory(name) else { continue }
        do throws(Errno) {
          levels.append(try self.level(of: next.fd, named: name, look))
          here = next
        } catch .ENOENT {
          // It was removed just now.
        }
        continue
      }
      // Where something was moved meanwhile, ".." leads elsewhere.
      while let above = levels.last {
        if let parent = try? here.fd.open("..", O_RDONLY | O_DIRECTORY), above.isFound(in: parent.fd) {
          here = parent
          break
        }
        if let again = try? root.openDirectory(at: levels.dropFirst().map(\.name)),
          above.isFound(in: again.fd)
        {
          here = again
          break
        }
        levels.removeLast()
      }
    }
  }

  /// Shows what a directory holds, and says which directories are to be visited there.
  private func level(of directory: FD, named name: [UInt8], _ look: Look) throws(Errno) -> Level {
    var level = Level(name: name, status: try directory.status())
    let isTop = levels.isEmpty
    let above = { isTop ? [] : levels.dropFirst().map(\.name) + [name] }
    for entry in try directory.entries() {
      let first = isTop ? entry.name : levels.count > 1 ? levels[1].name : name
      let isEntered = try look(
        Entry(
          name: entry.name, type: entry.type, directory: directory, first: first, depth: levels.count,
          above: above))
      if isEntered { level.directories.append(entry.name) }
    }
    return level
  }
}
