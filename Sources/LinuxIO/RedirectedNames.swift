// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import Synchronization

/// Names in directories of this process's own that stand for directories elsewhere: a link has the name,
/// which nobody follows, and a walk by names goes on where this says.
///
/// So a home on another disk is found at its path in the store, by the one process that has that disk.
package enum RedirectedNames {
  package struct Target: Sendable {
    package let root: SharedFD
    /// A directory on the same filesystem that nobody else gets into.
    package let workshop: SharedFD
    /// The directory that it is in.
    package let source: SharedFD

    package init(root: SharedFD, workshop: SharedFD, in source: SharedFD) {
      self.root = root
      self.workshop = workshop
      self.source = source
    }
  }
  private struct Key: Hashable {
    let device: UInt64
    let inode: UInt64
    let name: [UInt8]
  }
  private static let targets = Mutex<[Key: Target]>([:])
  private static let areAny = Atomic(false)

  /// Has a name lead to a target; to nothing but the link if that is nil.
  package static func set(_ name: [UInt8], in directory: FileStatus, to target: Target?) {
    targets.withLock { targets in
      targets[key(name, directory)] = target
      areAny.store(!targets.isEmpty, ordering: .releasing)
    }
  }

  package static func target(of name: [UInt8], in directory: FD) -> Target? {
    guard areAny.load(ordering: .acquiring), let status = try? directory.status() else { return nil }
    return targets.withLock { $0[key(name, status)] }
  }

  static func target(of name: Name, in directory: FD) -> Target? {
    areAny.load(ordering: .relaxed) ? target(of: Array(name.buffer), in: directory) : nil
  }

  private static func key(_ name: [UInt8], _ directory: FileStatus) -> Key {
    Key(device: UInt64(directory.st_dev), inode: UInt64(directory.st_ino), name: name)
  }
}
