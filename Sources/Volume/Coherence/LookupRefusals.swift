// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

// Where names are not cached, each lookup revalidates a name that the kernel has. If another user's lookup is
// refused with EACCES, the kernel drops the name for everyone. A process with that directory as its working
// directory then gets ENOENT from getcwd(2) until someone walks there again, and mounts on it or below are
// detached for good. Two errors (Linux 6.18) make the kernel keep the name and pass the error on: ENOMEM, and
// EINTR, after which many programs retry.
//
// So a lookup is refused with ENOMEM if the directory contains a process's working directory or leads to a
// mount. The name makes no difference, so the error reveals nothing about what exists. Entering is recorded;
// whether the processes are still there is found out when it matters (`WorkingDirectoryScanner`).

/// Which errno a refused lookup gets.
struct LookupRefusals: Sendable {
  let volume: Volume
  let nodes: NodeTable
  let kernel: KernelLink
  let audience: Audience

  /// The error with which a lookup in a directory is refused, in place of the gate's error.
  func refusal(_ error: Errno, in directory: borrowing NodeTable.Reference, by caller: Caller) -> Errno {
    guard error == .EACCES, !audience.isPrivate, let connection = kernel.connection else { return error }
    let index = directory.index
    let (isHeld, holdsEntered) = nodes.state.withLock { state in
      let holdsEntered = state.slab[index].pointee.flags.contains(.holdsEntered)
      return (state.refusalRates.refused(in: index, holdsEntered: holdsEntered), holdsEntered)
    }
    if isHeld || holdsEntered && !isLeft(directory, by: caller) { return .ENOMEM }
    return volume.mounts.lie(below: directory.number, of: connection, in: volume) ? .ENOMEM : error
  }

  /// Whether whoever has entered a directory that is in this one has left again.
  private func isLeft(_ directory: borrowing NodeTable.Reference, by caller: Caller) -> Bool {
    let index = directory.index
    let (last, threads) = nodes.state.withLock { state in
      let entries = state.latestEntries
      return (entries.last(in: index), entries.isBusy(index) ? nil : entries.threads(in: index))
    }
    guard let device = kernel.device, let threads else { return false }
    // A thread that was let in a moment ago may not have arrived yet. A thread that has ended never will, and
    // the caller's own thread has.
    if threads.contains(where: { $0 <= 0 || $0 != caller.pid && ProcessID.hasThread($0) }) { return false }
    if let seen = volume.workingDirectories.last(on: device, since: last &+ LatestEntries.nanoseconds) {
      if nodes.isLeft(directory, after: seen, by: caller.pid) { return true }
      if seen.isFresh { return false }
    }
    guard let seen = volume.workingDirectories.scan(on: device, for: caller.uid) else {
      recheckEntered(in: directory)
      return false
    }
    return nodes.isLeft(directory, after: seen, by: caller.pid)
  }

  /// Finds out, at most once a second, whether anyone is still in a subdirectory, when processes can't be
  /// scanned.
  ///
  /// The kernel drops an unused subdirectory, which ends its node.
  private func recheckEntered(in directory: borrowing NodeTable.Reference) {
    guard let connection = kernel.connection, nodes.enteredChecks.isDue(),
      let listing = try? volume.openForListing(directory.fd, sparingTime: true)
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
