// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import Policy

// Where in the tree is what apps are granted.

extension StoreAccess {
  /// Where in the tree something is that a person has named, and its number.
  func place(of path: String) throws -> (path: String, inode: UInt64) {
    let found = try context.find(path)
    return (try below(found.path, named: path), UInt64(found.status.st_ino))
  }

  /// The same for what was found before.
  func place(of found: FoundObject) throws -> (path: String, inode: UInt64) {
    (try below(found.path, named: found.path), UInt64(found.status.st_ino))
  }

  /// Where in the tree something was that may have gone meanwhile.
  func recordedPath(of path: String) throws -> String {
    try below(context.absolute(path).withoutDots, named: path)
  }

  /// A path below the root of the tree.
  private func below(_ full: String, named: String) throws -> String {
    let root = context.absolute(self.root)
    guard full.utf8.starts(with: (root + "/").utf8) else {
      throw CommandFailure(
        .failed,
        full == root
          ? "\(named.sanitized) is the whole tree; grant individual folders in it"
          : "\(named.sanitized) is not in the tree at \(root); only what is in the tree can be granted"
      )
    }
    return String(full.dropFirst(root.count + 1))
  }
}

extension String {
  /// The absolute path without `.`, `..` and slashes that say nothing.
  fileprivate var withoutDots: String {
    var names: [Substring] = []
    for name in parts(between: "/") where name != "." {
      if name == ".." { _ = names.popLast() } else { names.append(name) }
    }
    return "/" + names.joined(separator: "/")
  }
}
