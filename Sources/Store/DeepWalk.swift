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
    /// Which directory of the walk it is in; those of one directory come together.
    package let visit: Int
    fileprivate let above: (_ most: Int) -> [[UInt8]]

    /// The names on the way to it, and its own.
    package var path: [[UInt8]] { above(.max) + [name] }

    /// The first names on the way to it, without its own; for who has no time for all of a long way.
    package func beginning(_ most: Int) -> [[UInt8]] { above(most) }
  }

  /// Looks at something, and says whether to go into it.
  package typealias Look = (Entry) throws(Errno) -> Bool

  /// A directory on the way down, and which of those in it are to be visited still.
  private struct Level {
    let name: [UInt8]
    let status: FileStatus
    var directories: [[UInt8]] = []
    var hasLeftOut = false

    func isFound(in directory: FD) -> Bool { (try? directory.status())?.isSameObject(as: status) == true }
  }

  private var levels: [Level] = []
  private var visits = 0
  /// How many directories are to be visited still.
  private var waiting = 0
  private let mostWaiting: Int
  private var hasLeftOut = false

  /// Shows all that is below a directory to `look`, what is in a directory after the directory itself.
  ///
  /// What is in a directory takes little memory, save the names of directories that are to be visited. Where
  /// these are `mostWaiting` already, others are left out; returns whether none was.
  @discardableResult
  package static func through(
    _ root: FD, mostWaiting: Int = .max, _ look: Look
  ) throws(Errno) -> Bool {
    var walk = DeepWalk(mostWaiting: mostWaiting)
    try walk.run(root, look)
    return !walk.hasLeftOut
  }

  /// Users can have more in a directory than there is memory for: so many names are known at a time.
  private static let portion = 16_384

  private init(mostWaiting: Int) { self.mostWaiting = mostWaiting }

  private mutating func run(_ root: FD, _ look: Look) throws(Errno) {
    var here = try root.reopened(O_RDONLY | O_DIRECTORY)
    try enter(here.fd, named: [], look)
    while var level = levels.popLast() {
      if let name = level.directories.popLast() {
        waiting -= 1
        levels.append(level)
        guard let next = try? here.fd.openDirectory(name) else { continue }
        do throws(Errno) {
          try enter(next.fd, named: name, look)
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
        waiting -= above.directories.count
        levels.removeLast()
      }
    }
  }

  private mutating func enter(_ directory: FD, named name: [UInt8], _ look: Look) throws(Errno) {
    visits += 1
    let level = try level(of: directory, named: name, look)
    levels.append(level)
    waiting += level.directories.count
    hasLeftOut = hasLeftOut || level.hasLeftOut
  }

  /// Shows what a directory holds, and says which directories are to be visited there.
  private func level(of directory: FD, named name: [UInt8], _ look: Look) throws(Errno) -> Level {
    var level = Level(name: name, status: try directory.status())
    let isTop = levels.isEmpty
    let above = { (most: Int) -> [[UInt8]] in
      if isTop { return [] }
      let names = levels.dropFirst().prefix(most).map(\.name)
      return names.count < most ? names + [name] : names
    }
    try directory.inPortions(of: Self.portion) { (entries) throws(Errno) in
      for (name, type) in entries {
        let first = isTop ? name : levels.count > 1 ? levels[1].name : level.name
        let isEntered = try look(
          Entry(
            name: name, type: type, directory: directory, first: first, depth: levels.count, visit: visits,
            above: above))
        guard isEntered else { continue }
        if waiting + level.directories.count < mostWaiting {
          level.directories.append(name)
        } else {
          level.hasLeftOut = true
        }
      }
    }
    return level
  }
}
