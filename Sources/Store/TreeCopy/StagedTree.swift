// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO

/// A copy of a tree where nobody sees it, until it is put in its place; what never is goes with this object.
package final class StagedTree {
  /// The copy's top, open for reading.
  package var directory: FD { top.fd }
  package let count: TreeCopy.Count

  private let staging: OwnedFD
  private let top: OwnedFD
  private let name: String
  private let workshop: Workshop
  private var isThere = true

  /// Copies a tree to among a store's own files, and forces it to disk.
  package init(_ source: FD, in store: Store, _ copy: TreeCopy) throws {
    staging = try store.openStaging()
    workshop = Workshop(directory: staging.fd, prefix: "install-")
    let workshop = workshop
    try workshop.clear { (directory, name) throws(Errno) in try directory.removeTree(name) }
    let name = workshop.newName()
    self.name = name
    do {
      count = try Self.make(source, copy, name, in: workshop.directory)
      top = try name.withName { (name) throws(Errno) in try workshop.directory.openDirectory(name) }
    } catch {
      Self.remove(name, from: workshop.directory)
      throw error
    }
  }

  deinit {
    if isThere { Self.remove(name, from: workshop.directory) }
  }

  /// Gives it its name in one step; EEXIST if something has that.
  package func place(as newName: String, in parent: FD) throws(Errno) {
    try rename(to: newName, in: parent, UInt32(CLX_RENAME_NOREPLACE))
    isThere = false
  }

  /// Changes places with what has that name in one step, and removes that; ENOENT if nothing has it.
  package func replace(_ oldName: String, in parent: FD) throws(Errno) {
    // What is under our own name from now on is the old one.
    try rename(to: oldName, in: parent, UInt32(CLX_RENAME_EXCHANGE))
  }

  private func rename(to newName: String, in parent: FD, _ flags: UInt32) throws(Errno) {
    try name.withName { (name) throws(Errno) in
      try newName.withName { (newName) throws(Errno) in
        guard newName.isComponent else { throw .EINVAL }
        try workshop.directory.rename(name, to: parent, newName, flags: flags)
      }
    }
    try parent.synchronize(dataOnly: false)
  }

  private static func make(
    _ source: FD, _ copy: TreeCopy, _ name: String, in staging: FD
  ) throws -> TreeCopy.Count {
    // The errors of a copy say more than a number.
    var result: Result<TreeCopy.Count, TreeCopyFailure>?
    try name.withName { (name) throws(Errno) in
      result = Result { () throws(TreeCopyFailure) in try copy.copy(source, to: name, in: staging) }
    }
    guard let result else { throw Errno.EINVAL }
    return try result.get()
  }

  private static func remove(_ name: String, from staging: FD) {
    try? name.withName { (name) throws(Errno) in try staging.removeTree(name) }
  }
}
