// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy
internal import Synchronization

// The nodes of one view: every object that its kernel side knows.
//
//  1. A node ID is a slot index and the slot's generation, so a stale ID finds nothing instead of another
//     object.
//  2. A node lives while the kernel has lookups of it, or a request holds a reference to it.
//  3. An object has at most one node: nodes are found by what identifies their objects, not by names.
//  4. Descriptors are a cache, limited by the table's share of the volume's descriptors. A node without a
//     descriptor is reopened by its file handle, or by name in its parent if the filesystem has no handles.
//     If that finds another object, the result is ESTALE.
//  5. The lock is held for a few memory accesses, never during a system call that waits for a disk.

/// See the rules above.
package final class NodeTable: Sendable {
  let state: OrderedMutex<NodeTableState>
  /// Limits how often it is looked whether directories that were entered have been left.
  let enteredChecks = EverySecond()
  /// A real descriptor on the store's filesystem, by which handles are opened; nil where they may not be
  /// used.
  let handleRoot: FD?
  /// The same on a mount that leaves access times alone, for what is in read-only regions; nil where there is
  /// none.
  let noatimeRoot: FD?
  /// On which objects are found that lie on volumes.
  let attached: AttachedVolumes?
  /// How many nodes may have a descriptor at once.
  private let share: DescriptorShare
  private let budget: Budget?
  /// Whether another worker has left nodes in it.
  let isTakenOver: Bool
  /// Whether that worker's descriptors are still open.
  let keepsDescriptors: Bool
  var capacity: Int { share.each }

  /// Starts with the root.
  ///
  /// `handleRoot` and `noatimeRoot` outlive the table. `known` is where it is noted what the view knows.
  init(
    root: consuming OwnedFD, zone: Zone, position: Position = .whole, handleRoot: FD?, noatimeRoot: FD? = nil,
    attached: AttachedVolumes? = nil,
    share: DescriptorShare, budget: Budget? = nil, interest: ViewInterest? = nil, memory: ViewMemory? = nil
  ) throws(Errno) {
    isTakenOver = memory?.isKept == true
    let kept = if let memory { memory } else { try ViewMemory() }
    keepsDescriptors = kept.keepsDescriptors
    self.handleRoot = handleRoot
    self.noatimeRoot = noatimeRoot
    self.attached = attached
    self.share = share
    self.budget = budget
    let status = try root.fd.status()
    let identity = Identity(status, of: root.fd)
    var state = NodeTableState(in: kept, interest: interest, budget: budget)
    try state.beginAtRoot(
      identity, root.release().raw, zone, position, takingOver: kept.isKept,
      keepsDescriptors: kept.keepsDescriptors, capacity: share.each)
    self.state = OrderedMutex(.nodes, state)
    share.join()
  }

  deinit {
    state.withLock { $0.end() }
    share.leave()
  }

  static let rootIndex: UInt32 = 1

  /// What identifies a node's object; nil if there is no such node any more.
  func number(of id: NodeID) -> ObjectNumber? { with(id) { $0.number } }

  static func id(_ index: UInt32, _ generation: UInt32) -> NodeID {
    index == rootIndex ? .root : NodeID(UInt64(generation) << 32 | UInt64(index))
  }

  /// What `insula status` shows.
  package var counts: (nodes: Int, descriptors: Int) {
    state.withLock { ($0.slab.count, $0.clock.count + $0.held + 1) }
  }
}

extension NodeTable {
  /// Finds or makes the node of an object, counts one lookup of it, and keeps the descriptor if it is of use.
  ///
  /// ESTALE if the directory, and with it the object, has moved to another zone or position since the
  /// reference was taken.
  func intern(
    _ object: consuming OwnedFD, _ status: FileStatus, named name: Name, in directory: borrowing Reference,
    zone: Zone, position: Position = .whole, sealed: SealedNode? = nil, volume: UInt32? = nil
  ) throws(Errno) -> NodeID {
    let identity = Identity(status, of: object.fd)
    let raw = object.release().raw
    // Closed after the lock is released: what was in excess, and what had to make room.
    var excess: Int32 = -1
    var evicted: Int32 = -1
    var hasMoved = false
    let id = state.withLock { state -> NodeID? in
      guard directory.isWhereItWas(state) else {
        hasMoved = true
        excess = raw
        return nil
      }
      guard let index = state.find(identity) ?? state.make(identity, directory: status.isDirectory) else {
        excess = raw
        return nil
      }
      let node = state.slab[index]
      node.pointee.lookups += 1
      if index != Self.rootIndex {
        let hasMoved = node.pointee.parent != directory.index
        node.pointee.parent = directory.index
        node.pointee.volume = volume ?? directory.volume
        node.pointee.setPosition(position)
        if let sealed {
          state.seal(index, sealed)
          node.pointee.zone = zone
        } else {
          state.setZone(zone, of: index)
        }
        if hasMoved { state.noteWhereEntered(index) }
        if status.isDirectory { state.refusalRates.found(in: directory.index) }
        if handleRoot == nil || node.pointee.isOnVolume { state.remember(name, of: index) }
        if name.length > 0 { state.releaseHold(index) }
      }
      if node.pointee.descriptor < 0 {
        evicted = state.adopt(raw, for: index, capacity: capacity)
      } else {
        excess = raw
      }
      return Self.id(index, node.pointee.generation)
    }
    if excess >= 0 { close(excess) }
    if evicted >= 0 { close(evicted) }
    guard let id else { throw hasMoved ? .ESTALE : .ENOMEM }
    return id
  }

  /// Takes lookups back; the node goes with the last.
  package func forget(_ id: NodeID, count: UInt64) {
    let (freed, hasShrunk) = state.withLock { state -> (Int32, Bool) in
      guard let index = state.index(of: id), index != Self.rootIndex else { return (-1, false) }
      let node = state.slab[index]
      node.pointee.lookups -= min(count, node.pointee.lookups)
      guard node.pointee.lookups == 0, node.pointee.references == 0 else {
        if node.pointee.lookups > 0, node.pointee.generation <= state.left.generation { state.left.note(id) }
        return (-1, false)
      }
      let buckets = state.bucketCount
      let hadSeals = !state.sealed.isEmpty
      let freed = state.remove(index)
      let hasShrunk = state.bucketCount < buckets && handleRoot == nil
      return (freed, hasShrunk || hadSeals && state.sealed.isEmpty)
    }
    if freed >= 0 { close(freed) }
    // The allocator would keep the room of a million names, or of what seals say, for later.
    if hasShrunk { clx_return_free_memory() }
  }

  /// Lets `body` look at a node and change what is noted in it; nil if there is no such node.
  func with<Result>(_ id: NodeID, _ body: (inout Node) -> Result) -> Result? {
    state.withLock { state in
      guard let index = state.index(of: id) else { return nil }
      return body(&state.slab[index].pointee)
    }
  }

  /// Keeps an object reachable that is about to lose a name: its last one, or, without file handles, the one
  /// by which it would be reopened.
  ///
  /// It still has a name, so no other object can have its number.
  ///
  /// `open` supplies a descriptor if the node has none and could not be reopened by its handle. An unlinked
  /// file can be while any process has it open; a directory that is only someone's working directory can't.
  /// The user who removed the name is charged; over budget, the object is not kept.
  func hold(
    _ object: ObjectNumber, losing name: Name, in parent: NodeID, isLast: Bool,
    by payer: Payer = Payer(user: 0),
    open: () throws(Errno) -> OwnedFD
  ) {
    // An object with other names is usually found by them, so it must not use up the room of objects without
    // any.
    let limit = isLast ? capacity : capacity / 2
    var isWithinBudget = true
    defer { if !isWithinBudget { budget?.refuse(.descriptors, payer.user) } }
    let missing = state.withLock { state -> NodeID? in
      guard let index = state.find(object),
        isLast || state.isKnown(index, as: name, in: parent)
      else { return nil }
      isWithinBudget = state.holdDescriptor(index, limit: limit, by: payer)
      let node = state.slab[index]
      let isLost =
        handleRoot == nil || node.pointee.isOnVolume || node.pointee.flags.contains(.isDirectory)
      return node.pointee.descriptor < 0 && isLost ? Self.id(index, node.pointee.generation) : nil
    }
    guard let missing, let object = try? open(), let status = try? object.fd.status() else { return }
    // The number may have been another object's, whose node is still known: it must not get this one.
    let identity = Identity(status, of: object.fd)
    guard with(missing, { $0.matches(identity) }) == true else { return }
    install(object, for: missing)
    state.withLock { state in
      guard let index = state.index(of: missing) else { return }
      isWithinBudget = state.holdDescriptor(index, limit: limit, by: payer)
    }
  }

  /// Whether the kernel was told of the object of that number.
  func isKnown(_ object: ObjectNumber) -> Bool { state.withLock { $0.find(object) != nil } }

  /// Whether the kernel was told of the object of that number, in that directory, and may have kept its
  /// attributes.
  ///
  /// A guess, since inode numbers are reused: only for questions where either answer is correct.
  func isKnown(_ object: ObjectNumber, in parent: NodeID) -> Bool {
    state.withLock { state in
      guard let index = state.find(object) else { return false }
      let node = state.slab[index]
      return node.pointee.flags.contains(.attributesCached)
        && node.pointee.parent == UInt32(truncatingIfNeeded: parent.raw)
    }
  }

  /// What is known of the ACL and the flags of an object that has a name now.
  func security(of object: ObjectNumber) -> (known: KnownSecurity, identity: Identity)? {
    state.withLock { state in
      guard let index = state.find(object) else { return nil }
      let node = state.slab[index]
      return (KnownSecurity(node.pointee.flags), node.pointee.identity)
    }
  }

  /// The node of an object, if the kernel has one; `body` may look at it and change what is noted in it.
  func with<Result>(_ identity: Identity, _ body: (NodeID, inout Node) -> Result) -> Result? {
    state.withLock { state in
      guard let index = state.find(identity) else { return nil }
      let id = Self.id(index, state.slab[index].pointee.generation)
      return body(id, &state.slab[index].pointee)
    }
  }

  /// The node of an object that has a name now, if the kernel has one; `body` may look at it and change what
  /// is noted in it.
  func with<Result>(_ object: ObjectNumber, _ body: (NodeID, inout Node) -> Result) -> Result? {
    state.withLock { state in
      guard let index = state.find(object) else { return nil }
      return body(Self.id(index, state.slab[index].pointee.generation), &state.slab[index].pointee)
    }
  }
}
