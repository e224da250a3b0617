// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

// What a look-up is refused with.
//
// Where names are looked up each time, a stranger's look-up of a name that the kernel knows is one about that
// very name: refused with EACCES, the kernel drops it for everyone. Whoever has that directory as their
// working directory then gets ENOENT from getcwd(2) until someone walks there again, and what is mounted at
// it or below is detached for good. There are two errors (Linux 6.18) after which the kernel lets a name be,
// and passes them on: ENOMEM and EINTR, which many programs answer by asking again.
//
// So a look-up in a directory that holds someone's working directory, or the way to something mounted, is
// refused with ENOMEM: whatever the name is, so that nobody learns by it what is there.

extension View {
  /// What a look-up in a directory is refused with, instead of the error that the gate has given.
  func refusal(_ error: Errno, in directory: borrowing NodeTable.Pin) -> Errno {
    guard error == .EACCES, !isPrivate else { return error }
    if nodes.with(directory.id, { $0.flags.contains(.holdsEntered) }) == true {
      settleEntered(in: directory)
      return .ENOMEM
    }
    guard let connection else { return error }
    return volume.mounts.lie(below: directory.number, of: connection, in: volume.tree) ? .ENOMEM : error
  }

  /// Looks, not more often than once a second, whether anyone is still in a directory that is in this one.
  ///
  /// One that nobody uses the kernel drops, and that is the end of its node.
  private func settleEntered(in directory: borrowing NodeTable.Pin) {
    guard let connection, nodes.enteredChecks.isDue(),
      let listing = try? openForListing(directory.fd, sparingTime: true)
    else { return }
    let before = nodes.state.withLock { $0.timesEntered }
    guard let entered = enteredDirectories(in: listing.fd, device: directory.number.device),
      connection.dropUnused(entered), !entered.contains(where: { connection.knows($0) })
    else { return }
    nodes.state.withLock { state in
      guard state.timesEntered == before, let index = state.index(of: directory.id) else { return }
      state.slab[index].pointee.flags.remove(.holdsEntered)
    }
  }

  /// Those that are noted as entered; nil if there are too many names to look at.
  private func enteredDirectories(in directory: FD, device: UInt32) -> [NodeID]? {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)
    defer { buffer.deallocate() }
    guard let count = try? directory.readDirectory(into: buffer) else { return nil }
    var entries = DirectoryEntries(
      UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
    var found: [NodeID] = []
    while let entry = entries.next() {
      let number = ObjectNumber(inode: entry.inode, device: device)
      guard entry.name.isComponent,
        let id = nodes.with(number, { id, node in node.flags.contains(.isEntered) ? id : nil }) ?? nil
      else { continue }
      found.append(id)
    }
    // More than the buffer has room for are not looked through.
    return (try? directory.readDirectory(into: buffer)) == 0 ? found : nil
  }
}

/// Says at most once a second that it is time.
final class EverySecond: Sendable {
  private let last = Atomic<UInt32>(0)

  func isDue() -> Bool {
    let now = coarseSeconds()
    return last.exchange(now, ordering: .relaxed) != now
  }
}

extension NodeTable {
  /// Someone may have this directory as their working directory from now on, until the kernel forgets it.
  func noteEntered(_ id: NodeID) {
    state.withLock { state in
      guard let index = state.index(of: id), index != Self.rootIndex else { return }
      state.slab[index].pointee.flags.insert(.isEntered)
      state.noteWhereEntered(index)
    }
  }
}

extension NodeTableState {
  /// Notes where a directory is that may be someone's working directory; nothing for any other node.
  mutating func noteWhereEntered(_ index: UInt32) {
    let node = slab[index].pointee
    guard node.flags.contains(.isEntered), let parent = slab.slot(node.parent),
      parent.pointee.flags.contains(.inUse)
    else { return }
    timesEntered &+= 1
    parent.pointee.flags.insert(.holdsEntered)
  }
}
