// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

/// Something open that the next worker must know of.
protocol KeptOpenItem: Sendable {
  associatedtype Record: BitwiseCopyable
  var record: Record { get }
  /// Takes over what another worker has left; nil if it can't be used.
  init?(_ record: Record)
}

/// Things that are open, by the ids that the kernel was given for them.
///
/// An id is a place in the table and the generation in which it was given out. What is open is kept for the
/// next worker, until ``forget(_:)`` says that all that came of its removal is done.
final class HandleTable<Item: KeptOpenItem>: Sendable {
  private struct Slot {
    var item: Item?
    var generation: UInt32
  }
  /// As it is kept.
  struct Kept: BitwiseCopyable {
    var generation: UInt32
    var record: Item.Record
  }
  private struct State {
    var slots: [Slot] = []
    var free: [Int] = []
    var kept: KeptRecords<Kept>
    /// The first generation of a place: above all that another worker has given out.
    var first: UInt32 = 1
  }
  private let state: OrderedMutex<State>

  /// Without a region nothing is kept; what is kept is taken over as `mended` gives it, if it can be.
  ///
  /// `worker` counts the workers.
  init(
    in region: SharedRegion? = nil, takingOver: Bool = false, worker: Int = 0,
    mended: (Item.Record) -> Item.Record? = { $0 }
  ) {
    var state = State(kept: KeptRecords(region))
    if takingOver {
      var highest: UInt32 = 0
      var kept = state.kept
      kept.restore { index, old in
        highest = max(highest, old.generation)
        guard let record = mended(old.record), let item = Item(record) else { return }
        while state.slots.count < index {
          state.free.append(state.slots.count)
          state.slots.append(Slot(item: nil, generation: 0))
        }
        state.slots.append(Slot(item: item, generation: old.generation))
      }
      state.kept = kept
      for (index, slot) in state.slots.enumerated() {
        guard let item = slot.item else { continue }
        state.kept.set(index, Kept(generation: slot.generation, record: item.record))
      }
      // Who was given a handle that nobody remembers must not meet another one under its id; nor who was
      // given one by a worker that has left no record at all.
      let above = (highest & ~0xf_ffff) &+ 0x10_0000
      state.first = max(above, UInt32(truncatingIfNeeded: worker) << 20) | 1
      for index in state.free { state.slots[index].generation = state.first }
    }
    self.state = OrderedMutex(.leaf, state)
  }

  var count: Int { state.withLock { $0.slots.count - $0.free.count } }

  /// All that are open, with their ids.
  var handles: [(handle: HandleID, item: Item)] {
    state.withLock { state in
      state.slots.enumerated().compactMap { index, slot in
        slot.item.map { (HandleID(UInt64(slot.generation) << 32 | UInt64(index)), $0) }
      }
    }
  }

  func add(_ item: Item) -> HandleID {
    state.withLock { state in
      let index: Int
      if let free = state.free.popLast() {
        index = free
        state.slots[index].item = item
      } else {
        index = state.slots.count
        state.slots.append(Slot(item: item, generation: state.first))
      }
      state.kept.set(index, Kept(generation: state.slots[index].generation, record: item.record))
      return HandleID(UInt64(state.slots[index].generation) << 32 | UInt64(index))
    }
  }

  func find(_ handle: HandleID) throws(Errno) -> Item {
    let item = state.withLock { state in Self.index(handle, state).flatMap { state.slots[$0].item } }
    guard let item else { throw .EBADF }
    return item
  }

  func remove(_ handle: HandleID) -> Item? {
    state.withLock { state in
      guard let index = Self.index(handle, state) else { return nil }
      let item = state.slots[index].item
      state.slots[index].item = nil
      return item
    }
  }

  /// Gives the place of one that was removed to others.
  func forget(_ handle: HandleID) {
    state.withLock { state in
      let index = Int(UInt32(truncatingIfNeeded: handle.raw))
      guard index < state.slots.count, state.slots[index].item == nil,
        state.slots[index].generation == UInt32(truncatingIfNeeded: handle.raw >> 32)
      else { return }
      state.kept.clear(index)
      // Never twice.
      state.slots[index].generation &+= 1
      state.free.append(index)
    }
  }

  /// Takes out all that are open.
  func removeAll() -> [Item] {
    state.withLock { state in
      let items = state.slots.compactMap(\.item)
      for index in state.slots.indices { state.kept.clear(index) }
      (state.slots, state.free) = ([], [])
      return items
    }
  }

  /// All that are open.
  var all: [Item] { state.withLock { $0.slots.compactMap(\.item) } }

  private static func index(_ handle: HandleID, _ state: State) -> Int? {
    let index = Int(UInt32(truncatingIfNeeded: handle.raw))
    guard index < state.slots.count, state.slots[index].item != nil,
      state.slots[index].generation == UInt32(truncatingIfNeeded: handle.raw >> 32)
    else { return nil }
    return index
  }
}

typealias OpenFiles = HandleTable<OpenFile>
typealias OpenDirectories = HandleTable<OpenDirectory>

/// One open of a file.
struct OpenFile: Sendable {
  let node: NodeID
  let access: Access
  /// Only where data goes through the daemon: with passthrough the kernel has the file, and we need no
  /// descriptor.
  let descriptor: SharedFD?
  /// One that is open with O_APPEND, for what is written at the end.
  ///
  /// Only of a file that is served elsewhere: where its end is, a server may say wrongly for a moment, as a
  /// brick of GlusterFS's does that was away, and only such a descriptor leaves it to the server.
  let appending: SharedFD?
  /// Whether each read and write must ask if it is still granted.
  let isRevocable: Bool
  /// Who opened it, and who is charged for it.
  let caller: Caller
  let payer: Payer
  /// What the kernel reads and writes by itself.
  var backing: Backings.Backing?
  /// What it can do by memory maps of its view's own.
  var maps = MapUse.none

  var descriptors: [SharedFD] {
    guard let descriptor else { return [] }
    return appending.map { [descriptor, $0] } ?? [descriptor]
  }

  struct Access: OptionSet, Sendable {
    let rawValue: UInt8
    static let read = Access(rawValue: 1 << 0)
    static let write = Access(rawValue: 1 << 1)
    /// Instead of ``write``: what is written goes to the end, whatever the client asks for.
    static let append = Access(rawValue: 1 << 2)
  }
}

/// One open of a directory.
struct OpenDirectory: Sendable {
  let node: NodeID
  /// Who opened it, and the request to.
  let payer: Payer
  let request: RequestID
  /// Only where it has to stay open: see ``ListingDescriptors``.
  let descriptor: SharedFD?
  /// Of what a program serves.
  let listing: KeptListing?
}

/// Under which id the kernel knows the file behind each node that is open, and how often it is open.
///
/// All opens of an object at one time must have the same id, and may not mix with opens without one (EIO).
final class Backings: Sendable {
  struct Backing {
    let id: Int32
    /// Whether what is written goes by root's limits.
    let isRoots: Bool
    fileprivate var opens = 0

    init(id: Int32, isRoots: Bool) {
      self.id = id
      self.isRoots = isRoots
    }
  }
  // By number: a key of a type from another module is hashed through its witness tables, for each open again.
  private let state = OrderedMutex<[UInt64: Backing]>(.backings, [:])

  /// What there is for one more open of the node, by root or by somebody else; nil if its data goes through
  /// the daemon.
  func open(_ node: NodeID, byRoot: Bool, register: () -> Int32?) -> Backing? {
    // Registering under the lock: two opens at once must agree. It takes a reference in the kernel and no
    // disk access.
    state.withLock { backings in
      var backing = backings[node.raw] ?? Backing(id: register() ?? 0, isRoots: byRoot)
      backing.opens += 1
      backings[node.raw] = backing
      return backing.id == 0 ? nil : backing
    }
  }

  /// An open that another worker has answered; its id stands for as long as one of those is there.
  func reopened(_ node: NodeID, _ backing: Backing?) {
    state.withLock { backings in
      var known = backings[node.raw] ?? backing ?? Backing(id: 0, isRoots: false)
      known.opens += 1
      backings[node.raw] = known
    }
  }

  /// One open less; the last gives the id back.
  func close(_ node: NodeID, unregister: (Int32) -> Void) {
    state.withLock { backings in
      guard var backing = backings[node.raw] else { return }
      backing.opens -= 1
      backings[node.raw] = backing.opens == 0 ? nil : backing
      if backing.opens == 0, backing.id != 0 { unregister(backing.id) }
    }
  }
}
