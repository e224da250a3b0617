// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc
package import LinuxIO
package import Store

/// A tree where nobody sees it: a copy until it is put in its place, or what was taken from where it was.
///
/// What is left here goes with this object, or is cleared away by the next one, should the process be killed.
package final class StagedTree {
  /// How much was copied.
  package let count: TreeCopy.Count

  private let staging: OwnedFD
  private let name: String
  private let workshop: Workshop
  private var isThere: Bool
  /// Whether it stays where it is unless something is done to it.
  private var isKept = false

  /// Copies a tree to among a store's own files; ``synchronize()`` comes before anyone may see it.
  ///
  /// `path` is where it will get its name.
  package init(_ source: FD, in store: Store, for path: String, _ copy: TreeCopy) throws {
    staging = try store.openStaging(for: path)
    workshop = Workshop(directory: staging.fd, prefix: Self.prefix)
    try Self.clear(workshop)
    let name = workshop.newName()
    self.name = name
    isThere = true
    do {
      count = try copy.copy(source, named: name, in: workshop.directory)
    } catch {
      Self.remove(name, from: workshop.directory)
      throw error
    }
  }

  /// Has a name for what will be taken.
  package init(forTakingIn store: Store, from path: String) throws(StoreError) {
    staging = try store.openStaging(for: path)
    workshop = Workshop(directory: staging.fd, prefix: Self.prefix)
    name = workshop.newName()
    count = TreeCopy.Count()
    isThere = false
  }

  /// Makes an empty directory that belongs to someone.
  package init(
    emptyIn store: Store, for path: String, uid: UInt32, gid: UInt32, mode: UInt32
  ) throws(StoreError) {
    staging = try store.openStaging(for: path)
    workshop = Workshop(directory: staging.fd, prefix: Self.prefix)
    name = workshop.newName()
    count = TreeCopy.Count()
    isThere = true
    try Self.explaining("create a directory in", store) { () throws(Errno) in
      try StoreLayout.makeDirectory(name, in: workshop.directory, mode: mode, uid: uid, gid: gid)
    }
  }

  /// One that waits under that name in a directory of the store: it stays there until it is placed.
  package init(keptAs name: String, in directory: consuming OwnedFD) {
    staging = directory
    workshop = Workshop(directory: staging.fd, prefix: Self.prefix)
    self.name = name
    count = TreeCopy.Count()
    isThere = true
    isKept = true
  }

  deinit { if !isKept { remove() } }

  private static let prefix = "install-"

  /// Removes what processes have left that were stopped.
  package static func clear(_ store: Store) throws(StoreError) {
    let staging = try store.openStaging()
    try explaining("clear", store) { () throws(Errno) in
      try clear(Workshop(directory: staging.fd, prefix: prefix))
    }
  }

  private static func clear(_ workshop: Workshop) throws(Errno) {
    try workshop.clear { (directory, name) throws(Errno) in try directory.removeTree(name) }
  }

  /// The top, open for reading.
  package func open() throws(Errno) -> OwnedFD {
    try workshop.directory.openDirectory(name)
  }

  /// Forces all of it to disk, with whatever else is on that filesystem: a file at a time would wait for the
  /// disk as often as there are files.
  package func synchronize() throws(Errno) { try workshop.directory.synchronizeFilesystem() }

  /// Gives it its name in one step; EEXIST if something has that.
  ///
  /// Its new directory is to be synchronized then, as after the others.
  package func place(as newName: String, in parent: FD) throws(Errno) {
    try rename(to: newName, in: parent, UInt32(CLX_RENAME_NOREPLACE))
    isThere = false
  }

  /// Changes places with what has that name in one step; ENOENT if nothing has it.
  package func replace(_ oldName: String, in parent: FD) throws(Errno) {
    // What is under our own name from now on is the old one.
    try rename(to: oldName, in: parent, UInt32(CLX_RENAME_EXCHANGE))
    isKept = false
  }

  /// Takes what has that name away in one step.
  package func take(_ oldName: String, from parent: FD) throws(Errno) {
    try oldName.withName { (oldName) throws(Errno) in
      guard oldName.isComponent else { throw .EINVAL }
      try parent.rename(oldName, to: workshop.directory, name, flags: UInt32(CLX_RENAME_NOREPLACE))
    }
    isThere = true
  }

  /// Removes what is here.
  package func remove() {
    if isThere { Self.remove(name, from: workshop.directory) }
    isThere = false
  }

  private func rename(to newName: String, in parent: FD, _ flags: UInt32) throws(Errno) {
    try newName.withName { (newName) throws(Errno) in
      guard newName.isComponent else { throw .EINVAL }
      try workshop.directory.rename(name, to: parent, newName, flags: flags)
    }
  }

  private static func explaining(
    _ doing: String, _ store: Store, _ body: () throws(Errno) -> Void
  ) throws(StoreError) {
    do throws(Errno) { return try body() } catch {
      throw StoreError(error, doing: doing, path: store.stagingPath)
    }
  }

  private static func remove(_ name: String, from staging: FD) {
    try? staging.removeTree(name)
  }
}
