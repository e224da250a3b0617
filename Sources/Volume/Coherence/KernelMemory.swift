// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

// Coherence between views: a change made through one view is visible in all others before its reply is sent.
// So the kernels of the other views must drop what they have cached.
//
//  1. Before a reply lets a kernel cache something, that is recorded in the node
//     (`Node.Flags.attributesCached`, `Node.namesEpoch`), and the object is read afterwards. A change looks
//     for these records after it was made. So either the reader sees the change, or the change sees the
//     record.
//  2. Only two notifications are used: `attributesChanged` and `entriesChanged`. Neither waits for anything
//     that a request holds. So a request's thread may send them, to any view, also while it holds `NameLocks`
//     or `Grants.moving`, but no other lock.
//  3. Answers under way: the kernel drops attributes that were invalidated after it had requested them, and
//     looks up names again that it had requested before `entriesChanged`. But it keeps attributes that come
//     with a name (an entry reply) for an inode that it does not have yet. As long as such an answer may be
//     on its way (`Node.entrySentAt`), a change waits for a moment until the kernel has the inode. If it
//     has not by then, the names are withdrawn as well, so that it asks again: another lookup that it has
//     sent by then may still show the old attributes once. For its own changes a kernel drops
//     attributes when it gets the reply, but not attributes that it requested earlier and receives later. So
//     it is notified of its own changes too (`dropAnswersUnderWay`). It accepts what comes with a listing
//     whenever that arrives, so listings carry no entries (readdirplus) where several views exist.
//  4. If another thread has taken the record but has not notified the kernel yet, this thread notifies it too
//     (`KernelLink.namesUnderWay`): no call returns before the kernel knows.
//  5. What a file has in it the kernel reads and writes itself, the same pages for all views (passthrough).
//     The sizes and times of a file that may be written to through one view are not for the kernels of the
//     others to remember. See `WriterNotes.swift`.

/// What a kernel may have cached of an object, and what the daemon has.
struct CachedState: OptionSet {
  let rawValue: UInt8
  static let attributes = CachedState(rawValue: 1 << 0)
  /// The names in a directory, and that others are not there.
  static let names = CachedState(rawValue: 1 << 1)
  /// The listing of a directory, or the pages of a file.
  static let contents = CachedState(rawValue: 1 << 2)
  /// What decisions depend on: cached by the daemon, not by the kernel.
  static let security = CachedState(rawValue: 1 << 3)
}

/// What the kernel of one view remembers: for how long it may, and how it is withdrawn.
final class KernelMemory: Sendable {
  let volume: Volume
  let nodes: NodeTable
  let kernel: KernelLink
  let audience: Audience
  /// Directories whose names are not cached for a while, because all names of the view were invalidated for
  /// them.
  let nameCacheBackoff: NameCacheBackoff
  let kept = KeptContents()
  /// Whether the kernel can be told to look up names again.
  ///
  /// Otherwise nothing is cached that a later change could make inaccessible.
  private let canWithdraw = Atomic<Bool>(false)

  init(_ volume: Volume, _ nodes: NodeTable, _ kernel: KernelLink, _ audience: Audience) {
    self.volume = volume
    self.nodes = nodes
    self.kernel = kernel
    self.audience = audience
    nameCacheBackoff = NameCacheBackoff(seconds: volume.settings.backoffSeconds)
  }

  /// The kernel begins to ask.
  ///
  /// `known` is what another worker has found out; to ask would detach what is mounted in the tree.
  func begin(_ connection: any Connection, knowing known: Bool?) {
    canWithdraw.store(known ?? connection.entriesChanged(), ordering: .releasing)
    // Which spellings that kernel knows as missing, the other worker has known.
    if known == true, volume.spellings != nil { _ = connection.entriesChanged() }
  }

  var withdraws: Bool { canWithdraw.load(ordering: .relaxed) }

  /// Makes the kernel look up every name again.
  func withdrawNames() {
    kernel.notify { connection in
      kernel.beginEpoch()
      _ = connection.entriesChanged()
    }
  }

  // MARK: How long

  /// For how long the kernel may cache what a name in a directory stands for: only if everyone who gets here
  /// may walk through the directory, or a cached walk would skip the check.
  func entryValidity(
    in directory: Object, _ number: ObjectNumber, isOnVolume: Bool
  ) -> Double {
    guard audience.mayAllSearch(directory), canWithdraw.load(ordering: .relaxed),
      !nameCacheBackoff.covers(number, owner: audience.isPrivate ? nil : directory.uid)
    else { return 0 }
    if directory.zone.holdsVolumes { return 0 }
    if isOnVolume { return min(volume.settings.cacheSeconds, AttachedVolumes.cacheSeconds) }
    return volume.settings.cacheSeconds
  }

  /// For how long it may cache that a name is not there.
  ///
  /// When a directory closes, unused names can be dropped, but negative entries can't. So they live for a
  /// short time only.
  func absenceValidity(_ validity: Double) -> Double { audience.isPrivate ? validity : min(validity, 2) }

  /// Whether the kernel may keep what it has of a file's pages, or of a directory's listing, from before this
  /// open.
  func mayKeepContents(of node: NodeID) -> Bool {
    nodes.with(node) { $0.flags.remove(.contentsChanged) == nil } ?? false
  }

  // MARK: Withdrawing

  /// Makes the kernel of this view, and the daemon, read the object again.
  ///
  /// May be called from any thread.
  func invalidate(_ memory: CachedState, of object: ObjectNumber) {
    if memory.contains(.contents) { kept.forget(object) }
    let found = nodes.with(object) { id, node in invalidate(memory, id, &node) }
    if let found { notifyKernel(found) }
  }

  /// The same for one node of an object that may have several.
  func invalidate(_ memory: CachedState, ofNode id: NodeID) {
    if let found = nodes.with(id, { invalidate(memory, id, &$0) }) { notifyKernel(found) }
  }

  /// Has the kernel forget an object that has lost the name by which it knows it, unless somebody uses it.
  ///
  /// It would keep the inode under a name that nobody looks up again, until memory is short; and for as long
  /// the daemon would keep the object open, and its room on the disk. Kernels before Linux 6.18 do not know
  /// this notification. Like the others, it waits for nothing that a request holds.
  func forgetUnused(_ object: ObjectNumber) {
    guard let id = nodes.with(object, { id, _ in id }) else { return }
    kernel.notify { _ = $0.dropUnused([id]) }
  }

  /// What a kernel is to be told about a node.
  private struct Withdrawal {
    let id: NodeID
    var attributes = false
    var names = false
    /// Whether an answer may be on its way by which the kernel gets to know the node.
    var isArriving = false
  }

  /// Withdraws what our own kernel was told of an object that a call of its changes besides, such as a
  /// directory's times.
  ///
  /// It drops those by itself when it has the answer; but what it was told before, and takes in after that,
  /// it would keep.
  func dropAnswersUnderWay(about object: ObjectNumber) {
    let found = nodes.with(object) { id, node in
      // The kernel has the inode: it sent the request that made the change.
      node.entrySentAt = 0
      return invalidate(.attributes, id, &node)
    }
    if let found { notifyKernel(found) }
  }

  private func invalidate(_ memory: CachedState, _ id: NodeID, _ node: inout Node) -> Withdrawal {
    var withdrawal = Withdrawal(id: id)
    if memory.contains(.security) { node.flags.subtract(.security) }
    if memory.contains(.contents) { node.flags.insert(.contentsChanged) }
    if memory.contains(.attributes) {
      // Whoever finds that another thread has the record waits for the answer as well.
      withdrawal.isArriving = node.entrySentAt != 0
      withdrawal.attributes = node.flags.remove(.attributesCached) != nil
    }
    if memory.contains(.names), node.namesEpoch == kernel.epoch {
      node.namesEpoch = 0
      withdrawal.names = true
    }
    // Still under the lock: a thread that finds the records gone must find these counters.
    if withdrawal.attributes { kernel.attributesUnderWay.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    if withdrawal.names { kernel.namesUnderWay.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    return withdrawal
  }

  private func notifyKernel(_ withdrawal: Withdrawal) {
    var withdrawal = withdrawal
    let attributes = kernel.attributesUnderWay.load(ordering: .sequentiallyConsistent) > 0
    if attributes {
      kernel.notify { connection in
        connection.attributesChanged(withdrawal.id)
        if withdrawal.isArriving, !hasArrived(withdrawal.id, connection) { doubt(&withdrawal) }
      }
    }
    let names = kernel.namesUnderWay.load(ordering: .sequentiallyConsistent) > 0
    if names {
      kernel.notify { connection in
        kernel.beginEpoch()
        _ = connection.entriesChanged()
      }
    }
    if withdrawal.names { noteDisturbance(by: withdrawal.id) }
    if withdrawal.attributes {
      kernel.attributesUnderWay.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }
    if withdrawal.names { kernel.namesUnderWay.wrappingSubtract(1, ordering: .sequentiallyConsistent) }
  }

  /// Waits until the kernel has taken in the answer by which it knows the node, and has it drop what came
  /// with that: the client that waits for the answer only has to be scheduled.
  ///
  /// Nobody can hold it up for longer than a moment, or again and again.
  private func hasArrived(_ id: NodeID, _ connection: any Connection) -> Bool {
    if connection.knows(id) { return true }
    let began = monotonicNanoseconds()
    guard began >= kernel.awaitsAgain.load(ordering: .relaxed) else { return false }
    let pause = Condition(())
    repeat {
      // Nothing tells of what a client has taken in.
      _ = pause.wait(milliseconds: 1) { false }
      // The kernel has forgotten it.
      if nodes.with(id, { _ in true }) == nil || connection.knows(id) { return true }
    } while monotonicNanoseconds() &- began < Self.arrivalNanoseconds
    kernel.awaitsAgain.store(monotonicNanoseconds() &+ Self.arrivalPauseNanoseconds, ordering: .relaxed)
    return false
  }

  private static var arrivalNanoseconds: UInt64 { 20_000_000 }
  private static var arrivalPauseNanoseconds: UInt64 { 1_000_000_000 }

  /// Notes that the kernel may yet take in old attributes, and withdraws names so that it asks.
  private func doubt(_ withdrawal: inout Withdrawal) {
    _ = nodes.with(withdrawal.id) { $0.flags.insert(.isDoubtful) }
    guard !withdrawal.names else { return }
    withdrawal.names = true
    kernel.namesUnderWay.wrappingAdd(1, ordering: .sequentiallyConsistent)
  }

  /// Attributes in an entry reply may have arrived after the kernel was told to drop them.
  ///
  /// Now that the kernel names the node, it has processed that reply, so they can be dropped for good.
  func resolveDoubt(of node: NodeID) {
    let wasDoubtful = nodes.with(node) { $0.flags.remove(.isDoubtful) != nil }
    if wasDoubtful == true { kernel.connection?.attributesChanged(node) }
  }
}
