// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

// What a table notes of directories that may be someone's working directory.

/// The directories that were entered most recently, which may not be anyone's working directory yet.
///
/// The kernel asks whether a thread may enter, and the thread enters some time after the reply.
struct LatestEntries {
  private struct Entry {
    /// The slot of the directory that holds the one that was entered.
    var parent: UInt32 = 0
    /// 0 if it is not known who enters.
    var thread: Int32 = 0
    var time: UInt64 = 0
  }
  private var entries = [Entry](repeating: Entry(), count: 128)
  private var next = 0
  /// How long it takes to enter, at most.
  static let nanoseconds: UInt64 = 20_000_000

  mutating func add(in parent: UInt32, by thread: Int32) {
    entries[next] = Entry(parent: parent, thread: thread, time: monotonicNanoseconds())
    next = (next + 1) % entries.count
  }

  /// When a directory in this one was last entered, or not after that.
  func last(in parent: UInt32) -> UInt64 {
    // Nothing is known about entries that have been overwritten.
    entries.reduce(entries[next].time) { $1.parent == parent ? max($0, $1.time) : $0 }
  }

  /// Whether subdirectories are entered so often that a thread may be entering one now.
  func isBusy(_ parent: UInt32) -> Bool {
    let begin = monotonicNanoseconds() &- 1_000_000_000
    return entries.count { $0.parent == parent && $0.time >= begin } >= 10
  }

  /// The threads that may be about to enter a subdirectory; nil if there are too many to know.
  func threads(in parent: UInt32) -> [Int32]? {
    let begin = monotonicNanoseconds() &- Self.nanoseconds
    guard entries[next].time < begin else { return nil }
    return entries.filter { $0.parent == parent && $0.time >= begin }.map(\.thread)
  }
}

/// Rates of refused lookups, by directory.
///
/// If a lookup is refused while a process is entering the directory, the process loses its working directory
/// (getcwd fails). That is rare unless lookups are refused all the time. So where they are, a directory
/// counts as entered for a while after everyone has left.
struct RefusalRates {
  private struct Rate {
    /// The number of refusals since then, plus half of those in the second before.
    var began: UInt64
    var refusals = 0
    /// Whether anyone has entered a subdirectory meanwhile.
    ///
    /// If nobody does, walking through is no reason to hold it.
    var isEntered = false
    var heldUntil: UInt64 = 0
  }
  private var rates: [UInt32: Rate] = [:]
  private var cleared: UInt64 = 0
  private static let most = 4096
  private static let second: UInt64 = 1_000_000_000
  /// The threshold, in refusals per second, and how long a directory is held after someone was there.
  private static let refusals = 100
  private static let hold = 10 * second

  /// A lookup in a directory is about to be refused.
  ///
  /// Returns whether the refusal must not make the kernel drop a name.
  ///
  /// `holdsEntered` says that a directory in it is known to have been entered.
  mutating func refused(in parent: UInt32, holdsEntered: Bool) -> Bool {
    let now = monotonicNanoseconds()
    guard var rate = rates[parent] ?? begin(now) else { return true }
    if now &- rate.began >= Self.second {
      rate.refusals = now &- rate.began < 2 * Self.second ? rate.refusals / 2 : 0
      rate.began = now
    }
    rate.refusals = min(rate.refusals + 1, 4 * Self.refusals)
    if holdsEntered { rate.isEntered = true }
    rates[parent] = rate
    return now < rate.heldUntil
  }

  /// Nil if there are too many already.
  private mutating func begin(_ now: UInt64) -> Rate? {
    if rates.count >= Self.most, now &- cleared > Self.second {
      cleared = now
      rates = rates.filter { now < max($0.value.heldUntil, $0.value.began &+ 2 * Self.second) }
    }
    return rates.count < Self.most ? Rate(began: now) : nil
  }

  /// Someone has found a directory in this one, or enters it.
  mutating func found(in parent: UInt32) {
    guard !rates.isEmpty, let rate = rates[parent], rate.isEntered, rate.refusals >= Self.refusals
    else { return }
    let now = monotonicNanoseconds()
    guard now &- rate.began < 2 * Self.second else { return }
    rates[parent]?.heldUntil = now &+ Self.hold
  }
}

extension NodeTable {
  /// From now on, a thread may have this directory as its working directory, until the kernel forgets it or a
  /// scan finds the thread elsewhere.
  func noteEntered(_ id: NodeID, by thread: Int32) {
    state.withLock { state in
      guard let index = state.index(of: id), index != Self.rootIndex else { return }
      state.slab[index].pointee.flags.insert(.isEntered)
      state.noteWhereEntered(index, by: thread)
    }
  }

  /// Whether no thread has a subdirectory of this directory as its working directory, except the thread that
  /// is refused.
  func isLeft(_ parent: borrowing Reference, after scan: WorkingDirectoryScanner.Scan, by thread: Int32)
    -> Bool
  {
    state.withLock { state in
      guard state.latestEntries.last(in: parent.index) < scan.began else { return false }
      var isLeftByAll = true
      for inode in scan.directories.inodes {
        let number = ObjectNumber(inode: inode, device: parent.number.device)
        guard let index = state.find(number), state.slab[index].pointee.parent == parent.index else {
          continue
        }
        guard scan.directories.isOnly(thread, in: inode) else { return false }
        isLeftByAll = false
      }
      if isLeftByAll { state.slab[parent.index].pointee.flags.remove(.holdsEntered) }
      return true
    }
  }
}

extension NodeTableState {
  /// Notes where a directory is that may be someone's working directory; nothing for any other node.
  mutating func noteWhereEntered(_ index: UInt32, by thread: Int32 = 0) {
    let node = slab[index].pointee
    guard node.flags.contains(.isEntered), let parent = slab.slot(node.parent),
      parent.pointee.flags.contains(.inUse)
    else { return }
    timesEntered &+= 1
    parent.pointee.flags.insert(.holdsEntered)
    latestEntries.add(in: node.parent, by: thread)
    refusalRates.found(in: node.parent)
  }
}
