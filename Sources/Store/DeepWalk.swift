// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// A way through all directories of a tree, however deep somebody has made it.
///
/// It takes few descriptors, and time in proportion to what is in the tree: each directory is opened from the one that it is in.
struct DeepWalk {
  /// Of those on the way so many are kept open, the deepest ones.
  private static let mostOpen = 64

  private struct Level {
    /// Nil where it is opened again if there is more to do in it.
    var directory: SharedFD?
    /// Directories in it that are still to be entered.
    var waiting: [[UInt8]]
  }

  private let top: FD
  private var levels: [Level] = []
  private var hasBegun = false
  /// The names that lead from the top to the directory that was found last.
  private(set) var path: [[UInt8]] = []

  init(_ top: FD) { self.top = top }

  /// The next directory with what is in it, the top first; nil at the end.
  ///
  /// What can't be opened or listed is left out.
  mutating func next() -> (directory: SharedFD, entries: [(name: [UInt8], type: UInt8)])? {
    if !hasBegun {
      hasBegun = true
      return enter(try? SharedFD(top.openDirectory(at: path)))
    }
    while let last = levels.indices.last {
      guard let name = levels[last].waiting.popLast() else {
        leave()
        continue
      }
      if levels[last].directory == nil { levels[last].directory = try? SharedFD(top.openDirectory(at: path)) }
      let child = try? levels[last].directory?.use { (parent) throws(Errno) in
        SharedFD(try parent.openDirectory(at: [name]))
      }
      path.append(name)
      if let found = enter(child) { return found }
      path.removeLast()
    }
    return nil
  }

  private mutating func enter(
    _ directory: SharedFD?
  ) -> (directory: SharedFD, entries: [(name: [UInt8], type: UInt8)])? {
    guard let directory, let entries = try? directory.use({ (fd) throws(Errno) in try fd.entries() })
    else { return nil }
    let directories = entries.filter { $0.type == UInt8(DT_DIR) }.map(\.name)
    levels.append(Level(directory: directory, waiting: directories))
    let beyond = levels.count - 1 - Self.mostOpen
    if beyond >= 0 { levels[beyond].directory = nil }
    return (directory, entries)
  }

  private mutating func leave() {
    levels.removeLast()
    if !path.isEmpty { path.removeLast() }
  }
}
