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
// refused with ENOMEM: whatever the name is, so that nobody learns by it what is there. Who has entered is
// known; whether they are still there is asked when it matters (`Presence`).

extension View {
  /// What a look-up in a directory is refused with, instead of the error that the gate has given.
  func refusal(_ error: Errno, in directory: borrowing NodeTable.Pin, by caller: Caller) -> Errno {
    guard error == .EACCES, !isPrivate, let connection else { return error }
    let index = directory.index
    let (isHeld, holdsEntered) = nodes.state.withLock { state in
      let holdsEntered = state.slab[index].pointee.flags.contains(.holdsEntered)
      return (state.besieged.refused(in: index, holdsEntered: holdsEntered), holdsEntered)
    }
    if isHeld || holdsEntered && !isLeft(directory, by: caller) { return .ENOMEM }
    return volume.mounts.lie(below: directory.number, of: connection, in: volume.tree) ? .ENOMEM : error
  }

  /// Whether whoever has entered a directory that is in this one has left again.
  private func isLeft(_ directory: borrowing NodeTable.Pin, by caller: Caller) -> Bool {
    let index = directory.index
    let (last, threads) = nodes.state.withLock { state in
      let entries = state.latestEntries
      return (entries.last(in: index), entries.isBusy(index) ? nil : entries.threads(in: index))
    }
    guard let device = kernel.device, let threads else { return false }
    // Who was let in a moment ago may not have got there. Who has ended will not, and who asks this has.
    if threads.contains(where: { $0 <= 0 || $0 != caller.pid && ProcessID.hasThread($0) }) { return false }
    if let seen = volume.presence.last(on: device, since: last &+ LatestEntries.nanoseconds) {
      if nodes.isLeft(directory, after: seen, by: caller.pid) { return true }
      if seen.isFresh { return false }
    }
    guard let seen = volume.presence.look(on: device, for: caller.uid) else {
      settleEntered(in: directory)
      return false
    }
    return nodes.isLeft(directory, after: seen, by: caller.pid)
  }

  /// Looks, not more often than once a second, whether anyone is still in a directory that is in this one,
  /// where it can't be seen where processes are.
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
