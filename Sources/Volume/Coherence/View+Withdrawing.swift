// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

// What the kernel remembers of a directory that closes, and what it costs others to have it withdrawn.
//
//  1. To let the kernel look up every name again is the last means: it does that for all names of the view,
//     and until someone has walked to a working directory again, getcwd(2) there fails; what is mounted below
//     a name is detached.
//  2. So names that nobody uses are dropped one by one (`Connection.dropUnused`). While it changes a
//     directory's mode, owner or list the kernel lets nobody look for names in it, so none comes back
//     meanwhile; a name that it knows and that someone is just looking up again counts as used.
//  3. Where one is used, or there are too many, every name is looked up again after all. From then on names
//     in that directory are not remembered for a while (`RestlessDirectories`).

extension View {
  /// Whether a directory was open to all who get here and is no more.
  ///
  /// Of one that was closed before nothing is remembered that would have to be withdrawn.
  func closes(_ before: Object, _ after: Object) -> Bool {
    after.isDirectory && !isOpenToAll(after.everywhere) && isOpenToAll(before.everywhere)
  }

  /// Withdraws the names in a directory that is no longer open to all.
  ///
  /// Only for the request of this view's own kernel that has closed it.
  func withdrawNames(in directory: borrowing NodeTable.Pin) {
    let areKnown = nodes.with(directory.id) { $0.namesEpoch == kernel.epoch } == true
    if areKnown, dropNames(in: directory) { return }
    forget(.names, of: directory.number)
  }

  /// Whether no name of a directory is left in the kernel.
  ///
  /// The note that there are some stays: of those that were not there it knows that for a moment longer
  /// (`absenceValidity`).
  private func dropNames(in directory: borrowing NodeTable.Pin) -> Bool {
    guard let connection, let listing = try? openForListing(directory.fd, sparingTime: true) else {
      return false
    }
    var found = NamesToDrop(device: directory.number.device)
    guard collectNames(in: listing.fd, depth: 0, &found) else { return false }
    if found.nodes.isEmpty { return true }
    // Who is just walking over a name uses it for a moment only.
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

  /// Notes in which directory the names were for which the kernel had to look up every name again.
  func noteDisturbance(by id: NodeID) {
    guard let directory = nodes.directory(of: id), let pin = try? nodes.pin(directory, isNamed: false),
      let status = try? pin.fd.status()
    else { return }
    restless.add(pin.number, owner: isPrivate ? nil : status.st_uid)
  }
}

extension Object {
  /// The same as a view sees it that lets everything be done to it.
  fileprivate var everywhere: Object {
    Object(uid: uid, gid: gid, mode: mode, kind: kind, zone: zone, flags: flags, acl: acl)
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
