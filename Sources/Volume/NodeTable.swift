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
//  1. A node id is a slot's index and the generation in which it was given out, so an id that the kernel
//     should no longer have finds nothing instead of another object.
//  2. A node lives while the kernel has lookups of it, or a request has it pinned.
//  3. An object has at most one node: nodes are found by what identifies their objects, not by names.
//  4. Descriptors are a cache: at most as many nodes have one as the table's share of a volume's is. A node
//     without is opened again by its file handle, or where there are none by its name in its parent, and what
//     is found must be the same object (or ESTALE).
//  5. The lock is held for a few memory accesses, never during a system call that waits for a disk.

/// See the rules above.
package final class NodeTable: Sendable {
  let state: Mutex<NodeTableState>
  /// Limits how often it is looked whether directories that were entered have been left.
  let enteredChecks = EverySecond()
  /// A real descriptor on the store's filesystem, by which handles are opened; nil where they may not be
  /// used.
  let handleRoot: FD?
  /// The same on a mount that leaves access times alone, for what is in sealed places; nil where there is
  /// none.
  let quietRoot: FD?
  /// How many nodes may have a descriptor at once.
  private let share: DescriptorShare
  private let budget: Budget?
  var capacity: Int { share.each }

  /// Starts with the root.
  ///
  /// `handleRoot` and `quietRoot` outlive the table. `known` is where it is noted what the view knows.
  init(
    root: consuming OwnedFD, zone: Zone, position: Position = .whole, handleRoot: FD?, quietRoot: FD? = nil,
    share: DescriptorShare, budget: Budget? = nil, known: KnownObjectsOfView? = nil
  ) throws(Errno) {
    self.handleRoot = handleRoot
    self.quietRoot = quietRoot
    self.share = share
    self.budget = budget
    let status = try root.fd.status()
    let identity = Identity(status, of: root.fd)
    var state = NodeTableState(known: known, budget: budget)
    guard let index = state.slab.allocate() else { throw .ENOMEM }
    precondition(index == Self.rootIndex, "the first slot is the root's")
    let node = state.slab[index]
    node.pointee.lookups = 1
    node.pointee.inode = identity.inode
    node.pointee.device = identity.device
    node.pointee.handle = identity.handle
    node.pointee.zone = zone
    node.pointee.position = position
    node.pointee.flags = [.inUse, .isDirectory, .descriptorIsLastHold]
    node.pointee.descriptor = root.release().raw
    node.pointee.clock = .max
    state.insert(index)
    self.state = Mutex(state)
    share.join()
  }

  deinit {
    state.withLock { $0.end() }
    share.leave()
  }

  static let rootIndex: UInt32 = 1

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
  /// ESTALE if its directory has come into another zone or place since it was pinned, and with it the object.
  func intern(
    _ object: consuming OwnedFD, _ status: FileStatus, named name: Name, in directory: borrowing Pin,
    zone: Zone, position: Position = .whole, sealed: SealedNode? = nil
  ) throws(Errno) -> NodeID {
    let identity = Identity(status, of: object.fd)
    let raw = object.release().raw
    // Closed after the lock is given back: what was in excess, and what had to make room.
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
        node.pointee.position = position
        if let sealed {
          state.seal(index, sealed)
          node.pointee.zone = zone
        } else {
          state.setZone(zone, of: index)
        }
        if hasMoved { state.noteWhereEntered(index) }
        if status.isDirectory { state.besieged.found(in: directory.index) }
        if handleRoot == nil { node.pointee.remember(name) }
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
      guard node.pointee.lookups == 0, node.pointee.pins == 0 else { return (-1, false) }
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

  /// An object that has a name now, and so is the only one of its number, loses what it could be found by:
  /// this name, which is its last, or at least the one that it would be looked for under where there are no
  /// handles.
  ///
  /// `open` is asked for a descriptor where the node has none and could not be opened by a handle: a file
  /// that is open can be, whoever has it open, but not a directory that is someone's working directory.
  /// Whoever has taken the name away pays; over budget, the object is not kept.
  func hold(
    _ object: ObjectNumber, losing name: Name, in parent: NodeID, isLast: Bool,
    by payer: Payer = Payer(user: 0),
    open: () throws(Errno) -> OwnedFD
  ) {
    // What has other names will be found by them as a rule; it must not take the room of what has none.
    let limit = isLast ? capacity : capacity / 2
    var isWithinBudget = true
    defer { if !isWithinBudget { budget?.refuse(.descriptors, payer.user) } }
    let missing = state.withLock { state -> NodeID? in
      guard let index = state.find(object),
        isLast || state.isKnown(index, as: name, in: parent)
      else { return nil }
      isWithinBudget = state.holdDescriptor(index, limit: limit, by: payer)
      let node = state.slab[index]
      let isLost = handleRoot == nil || node.pointee.flags.contains(.isDirectory)
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

  /// Whether the kernel was told of the object of that number, in that directory, and may have kept its
  /// attributes.
  ///
  /// A guess, since numbers are given out again: for what may be answered either way.
  func isKnown(_ object: ObjectNumber, in parent: NodeID) -> Bool {
    state.withLock { state in
      guard let index = state.find(object) else { return false }
      let node = state.slab[index]
      return node.pointee.flags.contains(.attributesCached)
        && node.pointee.parent == UInt32(truncatingIfNeeded: parent.raw)
    }
  }

  /// What is known of the list and the flags of an object that has a name now.
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
