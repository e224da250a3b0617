// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Synchronization

// What a table notes of directories that may be someone's working directory.

/// The latest that were entered, and may not be anyone's working directory yet.
///
/// The kernel asks whether a thread may enter, and lets it in some time after the answer.
struct LatestEntries {
  private struct Entry {
    /// The slot of the directory that holds the one that was entered.
    var holder: UInt32 = 0
    /// 0 if it is not known who enters.
    var thread: Int32 = 0
    var time: UInt64 = 0
  }
  private var entries = [Entry](repeating: Entry(), count: 128)
  private var next = 0
  /// How long it takes to enter, at most.
  static let nanoseconds: UInt64 = 20_000_000

  mutating func add(in holder: UInt32, by thread: Int32) {
    entries[next] = Entry(holder: holder, thread: thread, time: monotonicNanoseconds())
    next = (next + 1) % entries.count
  }

  /// When a directory in this one was last entered, or not after that.
  func last(in holder: UInt32) -> UInt64 {
    // What was noted before the oldest is not known.
    entries.reduce(entries[next].time) { $1.holder == holder ? max($0, $1.time) : $0 }
  }

  /// Whether directories in this one are entered again and again, so that somebody may be about to.
  func isBusy(_ holder: UInt32) -> Bool {
    let begin = monotonicNanoseconds() &- 1_000_000_000
    return entries.count { $0.holder == holder && $0.time >= begin } >= 10
  }

  /// Who may be about to enter a directory in this one; nil if they are too many to be known.
  func threads(in holder: UInt32) -> [Int32]? {
    let begin = monotonicNanoseconds() &- Self.nanoseconds
    guard entries[next].time < begin else { return nil }
    return entries.filter { $0.holder == holder && $0.time >= begin }.map(\.thread)
  }
}

/// Directories in which strangers look for names again and again.
///
/// A refusal that is on its way when someone enters takes their working directory away. That is rare, unless
/// refusals are always on their way: so where they are, a directory is not taken for left as soon as it is.
struct Besieged {
  private struct Siege {
    /// How many refusals there were from then on; what came before counts by half.
    var began: UInt64
    var refusals = 0
    /// Whether anyone has entered a directory there meanwhile; where nobody does, walking through is no
    /// reason to hold anything.
    var isEntered = false
    var heldUntil: UInt64 = 0
  }
  private var sieges: [UInt32: Siege] = [:]
  private var cleared: UInt64 = 0
  private static let most = 4096
  private static let second: UInt64 = 1_000_000_000
  /// From how many refusals in a second on, and for how long after someone was there.
  private static let refusals = 100
  private static let hold = 10 * second

  /// A look-up in a directory is about to be refused; whether that must not tell the kernel to drop a name.
  ///
  /// `holdsEntered` says that a directory in it is known to have been entered.
  mutating func refused(in holder: UInt32, holdsEntered: Bool) -> Bool {
    let now = monotonicNanoseconds()
    guard var siege = sieges[holder] ?? begin(now) else { return true }
    if now &- siege.began >= Self.second {
      siege.refusals = now &- siege.began < 2 * Self.second ? siege.refusals / 2 : 0
      siege.began = now
    }
    siege.refusals = min(siege.refusals + 1, 4 * Self.refusals)
    if holdsEntered { siege.isEntered = true }
    sieges[holder] = siege
    return now < siege.heldUntil
  }

  /// Nil if there are too many already.
  private mutating func begin(_ now: UInt64) -> Siege? {
    if sieges.count >= Self.most, now &- cleared > Self.second {
      cleared = now
      sieges = sieges.filter { now < max($0.value.heldUntil, $0.value.began &+ 2 * Self.second) }
    }
    return sieges.count < Self.most ? Siege(began: now) : nil
  }

  /// Someone has found a directory in this one, or enters it.
  mutating func found(in holder: UInt32) {
    guard !sieges.isEmpty, let siege = sieges[holder], siege.isEntered, siege.refusals >= Self.refusals
    else { return }
    let now = monotonicNanoseconds()
    guard now &- siege.began < 2 * Self.second else { return }
    sieges[holder]?.heldUntil = now &+ Self.hold
  }
}

extension NodeTable {
  /// A thread may have this directory as its working directory from now on, until the kernel forgets it or
  /// the thread is seen elsewhere.
  func noteEntered(_ id: NodeID, by thread: Int32) {
    state.withLock { state in
      guard let index = state.index(of: id), index != Self.rootIndex else { return }
      state.slab[index].pointee.flags.insert(.isEntered)
      state.noteWhereEntered(index, by: thread)
    }
  }

  /// Whether nobody is in a directory that is in this one, but the thread that is refused there itself.
  func isLeft(_ holder: borrowing Pin, after look: Presence.Look, by thread: Int32) -> Bool {
    state.withLock { state in
      guard state.latestEntries.last(in: holder.index) < look.began else { return false }
      var isLeftByAll = true
      for inode in look.directories.inodes {
        let number = ObjectNumber(inode: inode, device: holder.number.device)
        guard let index = state.find(number), state.slab[index].pointee.parent == holder.index else {
          continue
        }
        guard look.directories.isOnly(thread, in: inode) else { return false }
        isLeftByAll = false
      }
      if isLeftByAll { state.slab[holder.index].pointee.flags.remove(.holdsEntered) }
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
    besieged.found(in: node.parent)
  }
}
