// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
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
    /// Which directory it is, whatever name leads there.
    package let number: Number
    /// Whose it was then: whoever has the disk or server can give it another owner.
    package let owner: UInt32

    package init(root: SharedFD, workshop: SharedFD, in source: SharedFD) throws(Errno) {
      self.root = root
      self.workshop = workshop
      self.source = source
      let status = try root.use { (root) throws(Errno) in try root.statusInMemory() }
      number = Number(status)
      owner = status.st_uid
    }
  }
  /// Tells a directory from all others that are open at the same time.
  package struct Number: Hashable, Sendable {
    package let device: UInt64
    fileprivate let inode: UInt64

    fileprivate init(_ status: FileStatus) {
      device = UInt64(status.st_dev)
      inode = UInt64(status.st_ino)
    }
  }
  /// A name in a directory.
  package struct Place: Hashable, Sendable {
    fileprivate let directory: Number
    fileprivate let name: [UInt8]

    package init(_ name: [UInt8], in directory: FileStatus) {
      self.directory = Number(directory)
      self.name = name
    }
  }
  private static let targets = Mutex<[Place: Target]>([:])
  private static let areAny = Atomic(false)

  /// Has a name lead to a target; to nothing but the link if that is nil.
  package static func set(_ name: [UInt8], in directory: FileStatus, to target: Target?) {
    targets.withLock { targets in
      targets[Place(name, in: directory)] = target
      areAny.store(!targets.isEmpty, ordering: .releasing)
    }
  }

  package static func target(of name: [UInt8], in directory: FD) -> Target? {
    guard areAny.load(ordering: .acquiring), let status = try? directory.status() else { return nil }
    return target(at: Place(name, in: status))
  }

  private static func target(at place: Place) -> Target? {
    let found = targets.withLock { $0[place] }
    if let only = Only.ofThread, only.place == place, only.target.number != found?.number { return nil }
    return found
  }

  /// Whether a name leads to a target still.
  package static func leads(_ place: Place, to target: Target) -> Bool {
    targets.withLock { $0[place] }?.number == target.number
  }

  static func target(of name: Name, in directory: FD) -> Target? {
    areAny.load(ordering: .relaxed) ? target(of: Array(name.buffer), in: directory) : nil
  }

  // MARK: One target alone

  /// What a thread works in.
  private final class Only {
    let place: Place
    let target: Target

    init(_ place: Place, _ target: Target) { (self.place, self.target) = (place, target) }

    static var ofThread: Only? {
      clx_only_target().map { Unmanaged<Only>.fromOpaque($0).takeUnretainedValue() }
    }
  }

  /// Does something for one target: for this thread the name leads to that or to nothing, whatever has the
  /// name by then.
  package static func only<Result, Failure: Error>(
    _ target: Target, at place: Place, _ body: () throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let only = Only(place, target)
    let before = clx_only_target()
    clx_set_only_target(Unmanaged.passUnretained(only).toOpaque())
    defer { withExtendedLifetime(only) { clx_set_only_target(before) } }
    return try body()
  }

  /// Whether this thread works in something else that had this name, which is no link any more.
  static func isOthers(_ name: Name, in directory: FD) -> Bool {
    guard let only = Only.ofThread, only.place.name.elementsEqual(name.buffer) else { return false }
    return (try? directory.status()).map { Number($0) == only.place.directory } ?? true
  }
}
