// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Removing and moving names.

extension View {
  package func remove(
    _ name: Name, in parent: NodeID, directory isDirectory: Bool, by caller: Caller
  ) throws(Errno) {
    let directory = try nodes.pin(parent)
    let status = try directory.fd.status()
    let doomed = try authorizeRemoval(of: name, in: directory, status, by: caller)
    holdIfLastName(doomed, name, in: directory)
    try directory.fd.remove(name, directory: isDirectory)
  }

  package func rename(
    _ name: Name, in parent: NodeID, to newName: Name, in newParent: NodeID, flags: UInt32, by caller: Caller
  ) throws(Errno) {
    let exchange: UInt32 = 2
    let noReplace: UInt32 = 1
    guard flags & ~(exchange | noReplace) == 0, flags != exchange | noReplace else { throw .EINVAL }
    let from = try nodes.pin(parent)
    let to = try nodes.pin(newParent)
    let fromStatus = try from.fd.status()
    let toStatus = parent == newParent ? fromStatus : try to.fd.status()
    let moved = try authorizeRemoval(of: name, in: from, fromStatus, by: caller)
    let addition: Rights = moved.status.isDirectory ? .addSubdirectory : .addFile
    try authorize([addition, .search], on: toStatus, zone: to.zone, by: caller)
    var replaced: Doomed?
    do throws(Errno) {
      replaced = try authorizeRemoval(of: newName, in: to, toStatus, by: caller)
    } catch .ENOENT {
      // Nothing is in the way. If it should be there (exchange), the backing filesystem says so.
    }
    if parent != newParent {
      try authorizeNewParent(moved, by: caller)
      if let replaced, flags & exchange != 0 { try authorizeNewParent(replaced, by: caller) }
    }
    if let replaced, flags == 0 { holdIfLastName(replaced, newName, in: to) }
    try from.fd.rename(name, to: to.fd, newName, flags: flags)
    // The kernel takes what it remembers of a name along, into a directory that may not be everyone's.
    withdrawIfClosed(from, toStatus, to.zone)
    if flags & exchange != 0 { withdrawIfClosed(to, fromStatus, from.zone) }
    noteMoved(moved, to: newName, in: to)
    if let replaced, flags & exchange != 0 { noteMoved(replaced, to: name, in: from) }
  }

  /// Withdraws what the kernel knows of a directory's entries if one has gone to a directory that is closed to some.
  private func withdrawIfClosed(
    _ source: borrowing NodeTable.Pin, _ target: FileStatus, _ targetZone: Zone
  ) {
    guard entryValidity(in: target, zone: targetZone) == 0 else { return }
    withdrawChildren(of: source.id)
  }

  /// A name that is about to go, and what it stands for now.
  private struct Doomed {
    let status: FileStatus
    let zone: Zone
    var identity: (inode: UInt64, device: UInt32) {
      (UInt64(status.st_ino), UInt32(truncatingIfNeeded: status.st_dev))
    }
  }

  private func authorizeRemoval(
    of name: Name, in directory: borrowing NodeTable.Pin, _ directoryStatus: FileStatus, by caller: Caller
  ) throws(Errno) -> Doomed {
    // Before anything is said about the name: who may not search the directory does not learn what is in it.
    try authorize([.deleteChild, .search], on: directoryStatus, zone: directory.zone, by: caller)
    let doomed = Doomed(
      status: try directory.fd.status(of: name), zone: directory.zone.zone(of: name))
    try authorizeRemoval(of: doomed.status, zone: doomed.zone, from: directoryStatus, by: caller)
    return doomed
  }

  /// A directory that gets another parent is changed itself: its `..` is.
  private func authorizeNewParent(_ moved: Doomed, by caller: Caller) throws(Errno) {
    guard moved.status.isDirectory else { return }
    try authorize(.write, on: moved.status, zone: moved.zone, by: caller)
  }

  /// An object that loses its last name can't be found again once its descriptor is closed; so it is kept open.
  private func holdIfLastName(
    _ doomed: Doomed, _ name: Name, in directory: borrowing NodeTable.Pin
  ) {
    let isLast = doomed.status.isDirectory || doomed.status.st_nlink <= 1
    // Without handles any name may be the one that the object is found by.
    guard isLast || !volume.settings.fileHandles else { return }
    let fd = directory.fd
    nodes.hold(
      inode: doomed.identity.inode, device: doomed.identity.device, losing: name, in: directory.id,
      isLast: isLast
    ) { () throws(Errno) in try fd.child(name) }
  }

  private func noteMoved(_ moved: Doomed, to name: Name, in parent: borrowing NodeTable.Pin) {
    nodes.moved(
      inode: moved.identity.inode, device: moved.identity.device, to: name, in: parent.id,
      zone: parent.zone.zone(of: name))
  }
}
