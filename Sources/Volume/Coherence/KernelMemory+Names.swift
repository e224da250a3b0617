// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

// Withdrawing the names that a kernel has cached of a directory that becomes closed to some users.
//
//  1. Making the kernel look up every name again is the last resort. It affects all names of the view,
//     getcwd(2) fails in a working directory until someone has walked there again, and mounts below a name
//     are detached.
//  2. So unused names are dropped one by one (`Connection.dropUnused`). While the kernel changes a
//     directory's mode, owner or ACL it allows no lookups in it, so no name comes back meanwhile. A cached
//     name that is being revalidated counts as used.
//  3. If a name is in use, or there are too many, all names are invalidated after all. Then names in that
//     directory are not cached for a while (`NameCacheBackoff`).

extension KernelMemory {
  /// Withdraws the names in a directory that is no longer open to all.
  ///
  /// Only for the request of this view's own kernel that has closed it.
  func withdrawNames(in directory: borrowing NodeTable.Reference) {
    let areKnown = nodes.with(directory.id) { $0.namesEpoch == kernel.epoch } == true
    if areKnown, dropNames(in: directory) { return }
    invalidate(.names, of: directory.number)
  }

  /// Whether no name of a directory is left in the kernel.
  ///
  /// The record that names are cached stays: negative entries live a moment longer (`absenceValidity`).
  private func dropNames(in directory: borrowing NodeTable.Reference) -> Bool {
    guard let connection = kernel.connection,
      let listing = try? volume.openForListing(directory.fd, sparingTime: true)
    else {
      return false
    }
    var found = NamesToDrop(device: directory.number.device)
    guard collectNames(in: listing.fd, depth: 0, &found) else { return false }
    if found.nodes.isEmpty { return true }
    // A path walk uses a name only for a moment.
    for _ in 0..<3 {
      guard connection.dropUnused(found.nodes) else { return false }
      if !found.nodes.contains(where: { connection.knows($0) }) { return true }
      sched_yield()
    }
    return false
  }

  private struct NamesToDrop {
    let device: UInt32
    /// What is in a directory comes before it.
    var nodes: [NodeID] = []
    /// How many names may still be looked at.
    var room = 512
  }

  /// Collects what the kernel knows below a directory; false if that is too much, or is in use.
  private func collectNames(in directory: FD, depth: Int, _ found: inout NamesToDrop) -> Bool {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 8 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      guard let count = try? directory.readDirectory(into: buffer) else { return false }
      guard count > 0 else { return true }
      var entries = DirectoryEntries(
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
      while let entry = entries.next() {
        guard entry.name.isComponent else { continue }
        found.room -= 1
        guard found.room >= 0 else { return false }
        guard collect(entry, in: directory, depth: depth, &found) else { return false }
      }
    }
  }

  private func collect(
    _ entry: DirectoryEntries.Entry, in directory: FD, depth: Int, _ found: inout NamesToDrop
  ) -> Bool {
    let number = ObjectNumber(inode: entry.inode, device: found.device)
    let known = nodes.with(number) { id, node in
      (id: id, isDirectory: node.flags.contains(.isDirectory), isOpen: node.writers > 0)
    }
    guard let known else { return true }
    if known.isOpen { return false }
    if known.isDirectory {
      guard depth < 8, let inner = try? directory.openDirectory(entry.name),
        collectNames(in: inner.fd, depth: depth + 1, &found)
      else { return false }
    }
    found.nodes.append(known.id)
    return true
  }

  /// Records the directory because of which all names of the view had to be invalidated.
  func noteDisturbance(by id: NodeID) {
    guard let directory = nodes.directory(of: id),
      let reference = try? nodes.reference(to: directory, isNamed: false),
      let status = try? reference.fd.status()
    else { return }
    nameCacheBackoff.add(reference.number, owner: audience.isPrivate ? nil : status.st_uid)
  }
}

extension NodeTable {
  /// A directory itself; of anything else the directory through which it was last found.
  fileprivate func directory(of id: NodeID) -> NodeID? {
    state.withLock { state in
      guard let index = state.index(of: id) else { return nil }
      if state.slab[index].pointee.flags.contains(.isDirectory) { return id }
      let parent = state.slab[index].pointee.parent
      guard let node = state.slab.slot(parent), node.pointee.flags.contains(.inUse) else { return nil }
      return Self.id(parent, node.pointee.generation)
    }
  }
}
