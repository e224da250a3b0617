// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

// Names while something is mounted in the tree.
//
// To make the kernel look up every name again would detach it. So as long as something is mounted, that is
// never done: the kernel keeps no names, so nothing has to be withdrawn. What it was told before expires name
// by name, by a thread of its own, since that waits for the locks of directories. A name that has expired is
// looked up again, and what is mounted, open, or somebody's working directory stays what it is.

/// Whether a view knows that something is mounted in it, and whether names are expiring.
final class MountedInView: Sendable {
  fileprivate let isKnown = Atomic<Bool>(false)
  private struct Turns {
    var areUnderWay = false
    var again = false
  }
  private let turns = OrderedMutex(.leaf, Turns())

  /// Whether a thread must begin; otherwise the one that is at work does all again.
  fileprivate func begins() -> Bool {
    turns.withLock { turns in
      turns.again = turns.areUnderWay
      defer { turns.areUnderWay = true }
      return !turns.areUnderWay
    }
  }

  /// Whether that thread has done what it should.
  fileprivate func ends() -> Bool {
    turns.withLock { turns in
      turns.areUnderWay = turns.again
      turns.again = false
      return !turns.areUnderWay
    }
  }
}

extension KernelMemory {
  /// Whether something is mounted in what this view shows, so that names are neither kept nor withdrawn.
  func hasMounts(lookingNow: Bool) -> Bool {
    if !lookingNow, !mounted.isKnown.load(ordering: .relaxed), volume.mounts.wereAbsent { return false }
    let isMounted = volume.mounts.lie(onDevice: kernel.device, lookingNow: lookingNow)
    guard isMounted != mounted.isKnown.load(ordering: .relaxed) else { return isMounted }
    let wasKnown = mounted.isKnown.exchange(isMounted, ordering: .sequentiallyConsistent)
    if isMounted, !wasKnown, mounted.begins() {
      let work = { @Sendable [self] in expireNames() }
      if let thread = try? JoinableThread(name: "names", work) { thread.detach() } else { _ = mounted.ends() }
    }
    return isMounted
  }

  private func expireNames() {
    let pause = Condition(())
    repeat {
      // Nothing tells of answers that are under way.
      _ = pause.wait(milliseconds: Self.answerMilliseconds) { false }
      var next: UInt32 = 0
      while let (directories, end) = nodes.directories(withNamesOf: kernel.epoch, from: next) {
        for directory in directories { expireNames(in: directory) }
        next = end
      }
    } while !mounted.ends()
  }

  private static var answerMilliseconds: Int { 50 }

  private func expireNames(in id: NodeID) {
    guard let directory = try? nodes.reference(to: id, isNamed: false),
      // Names on a volume are kept for a second only.
      !directory.isOnVolume,
      let listing = try? volume.openForListing(directory.fd, sparingTime: true)
    else { return }
    _ = nodes.with(id) { $0.namesEpoch = 0 }
    let device = directory.number.device
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while let count = try? listing.fd.readDirectory(into: buffer), count > 0 {
      var entries = DirectoryEntries(
        UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
      while let entry = entries.next() {
        let number = ObjectNumber(inode: entry.inode, device: device)
        guard entry.name.isComponent, nodes.with(number, { _, _ in true }) == true else { continue }
        kernel.notify { $0.expire(entry.name, in: id) }
      }
    }
  }
}

extension NodeTable {
  /// Directories of which the kernel was told names that it may keep, among some places of the table from one
  /// on; nil where it ends.
  fileprivate func directories(withNamesOf epoch: UInt16, from first: UInt32) -> ([NodeID], UInt32)? {
    state.withLock { state in
      let end = min(state.slab.end, first &+ 4096)
      guard first < end else { return nil }
      var found: [NodeID] = []
      for index in first..<end {
        guard let node = state.slab.slot(index), node.pointee.flags.contains(.inUse),
          node.pointee.flags.contains(.isDirectory), node.pointee.namesEpoch == epoch
        else { continue }
        found.append(Self.id(index, node.pointee.generation))
      }
      return (found, end)
    }
  }
}
