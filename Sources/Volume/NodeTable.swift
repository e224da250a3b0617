// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
package import Policy
internal import Synchronization

// The nodes of one view: every object that its kernel side knows.
//
//  1. A node id is a slot's index and the generation in which it was given out, so an id that the kernel should no longer
//     have finds nothing instead of another object.
//  2. A node lives while the kernel has lookups of it, or a request has it pinned.
//  3. An object has at most one node: nodes are found by what identifies their objects, not by names.
//  4. Descriptors are a cache: at most `capacity` nodes have one. A node without is opened again by its file handle, or
//     where there are none by its name in its parent, and what is found must be the same object (or ESTALE).
//  5. The lock is held for a few memory accesses, never during a system call that waits for a disk.

/// See the rules above.
package final class NodeTable: Sendable {
  let state: Mutex<NodeTableState>
  /// A real descriptor on the store's filesystem, by which handles are opened; nil where they may not be used.
  let handleRoot: FD?
  /// The same on a mount that leaves access times alone, for what is in sealed places; nil where there is none.
  let quietRoot: FD?
  /// How many nodes may have a descriptor at once.
  private let capacity: Int

  /// Starts with the root.
  ///
  /// `handleRoot` and `quietRoot` outlive the table. `known` is where it is noted what the view knows.
  init(
    root: consuming OwnedFD, zone: Zone, handleRoot: FD?, quietRoot: FD? = nil, capacity: Int,
    known: KnownObjectsOfView? = nil
  ) throws(Errno) {
    self.handleRoot = handleRoot
    self.quietRoot = quietRoot
    self.capacity = max(capacity, 16)
    let status = try root.fd.status()
    let identity = Identity(status, of: root.fd)
    var state = NodeTableState(known: known)
    guard let index = state.slab.allocate() else { throw .ENOMEM }
    precondition(index == Self.rootIndex, "the first slot is the root's")
    let node = state.slab[index]
    node.pointee.lookups = 1
    node.pointee.inode = identity.inode
    node.pointee.device = identity.device
    node.pointee.handle = identity.handle
    node.pointee.zone = zone
    node.pointee.flags = [.inUse, .isDirectory, .descriptorIsLastHold]
    node.pointee.descriptor = root.release().raw
    node.pointee.clock = .max
    state.insert(index)
    self.state = Mutex(state)
  }

  deinit { state.withLock { $0.end() } }

  static let rootIndex: UInt32 = 1

  private static func id(_ index: UInt32, _ generation: UInt32) -> NodeID {
    index == rootIndex ? .root : NodeID(UInt64(generation) << 32 | UInt64(index))
  }

  /// What `insula status` shows.
  package var counts: (nodes: Int, descriptors: Int) {
    state.withLock { ($0.slab.count, $0.clock.count + $0.held + 1) }
  }
}

extension NodeTable {
  /// Finds or makes the node of an object, counts one lookup of it, and keeps the descriptor if it is of use.
  func intern(
    _ object: consuming OwnedFD, _ status: FileStatus, named name: Name, in parent: NodeID, zone: Zone,
    sealed: SealedNode? = nil
  ) throws(Errno) -> NodeID {
    let identity = Identity(status, of: object.fd)
    let raw = object.release().raw
    // Closed after the lock is given back: what was in excess, and what had to make room.
    var excess: Int32 = -1
    var evicted: Int32 = -1
    let id = state.withLock { state -> NodeID? in
      let parentIndex = UInt32(truncatingIfNeeded: parent.raw)
      guard let index = state.find(identity) ?? state.make(identity, directory: status.isDirectory) else {
        excess = raw
        return nil
      }
      let node = state.slab[index]
      node.pointee.lookups += 1
      if index != Self.rootIndex {
        node.pointee.parent = parentIndex
        if let sealed {
          state.seal(index, sealed)
          node.pointee.zone = zone
        } else {
          state.setZone(zone, of: index)
        }
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
    guard let id else { throw .ENOMEM }
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

  /// An object that has a name now, and so is the only one of its number, loses what it could be found by: this name,
  /// which is its last, or at least the one that it would be looked for under where there are no handles.
  ///
  /// `open` is asked for a descriptor where the node has none and could not be opened by a handle: a file that is open can be,
  /// whoever has it open, but not a directory that is someone's working directory.
  func hold(
    inode: UInt64, device: UInt32, losing name: Name, in parent: NodeID, isLast: Bool,
    open: () throws(Errno) -> OwnedFD
  ) {
    // What has other names will be found by them as a rule; it must not take the room of what has none.
    let limit = isLast ? capacity : capacity / 2
    let missing = state.withLock { state -> NodeID? in
      guard let index = state.find(inode: inode, device: device),
        isLast || state.isKnown(index, as: name, in: parent)
      else { return nil }
      state.holdDescriptor(index, limit: limit)
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
      if let index = state.index(of: missing) { state.holdDescriptor(index, limit: limit) }
    }
  }

  /// Whether the kernel was told of the object of that number, in that directory, and may have kept its attributes.
  ///
  /// A guess, since numbers are given out again: for what may be answered either way.
  func isKnown(_ inode: UInt64, device: UInt32, in parent: NodeID) -> Bool {
    state.withLock { state in
      guard let index = state.find(inode: inode, device: device) else { return false }
      let node = state.slab[index]
      return node.pointee.flags.contains(.attributesCached)
        && node.pointee.parent == UInt32(truncatingIfNeeded: parent.raw)
    }
  }

  /// What is known of the list and the flags of an object that has a name now.
  func security(inode: UInt64, device: UInt32) -> (known: KnownSecurity, identity: Identity)? {
    state.withLock { state in
      guard let index = state.find(inode: inode, device: device) else { return nil }
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

  /// The node of an object that has a name now, if the kernel has one; `body` may look at it and change what is noted in it.
  func with<Result>(_ object: ObjectNumber, _ body: (NodeID, inout Node) -> Result) -> Result? {
    state.withLock { state in
      guard let index = state.find(inode: object.inode, device: object.device) else { return nil }
      return body(Self.id(index, state.slab[index].pointee.generation), &state.slab[index].pointee)
    }
  }
}

// MARK: - Descriptors

extension NodeTable {
  /// A node in use by a request: it stays, and so does its descriptor.
  package struct Pin: ~Copyable {
    package let id: NodeID
    package let fd: FD
    package let zone: Zone
    /// The object's number, for tables of objects.
    let number: ObjectNumber
    /// Whether the kernel remembered names of the directory when the request began.
    let namesAreRemembered: Bool
    /// What was known of the object's list and flags when the request began.
    let security: KnownSecurity
    private let index: UInt32
    private unowned let table: NodeTable

    fileprivate init(_ id: NodeID, _ index: UInt32, _ node: Node, _ table: NodeTable) {
      self.id = id
      self.index = index
      fd = FD(node.descriptor)
      zone = node.zone
      number = node.number
      namesAreRemembered = node.flags.contains(.childrenCached)
      security = KnownSecurity(node.flags)
      self.table = table
    }

    deinit { table.unpin(index) }
  }

  /// Holds a node for a request.
  ///
  /// ESTALE if the kernel has no business with it, or its object is gone. `isNamed` says that the kernel has named the node, and so
  /// has taken in the answer that told it of it.
  package func pin(_ id: NodeID, isNamed: Bool = true) throws(Errno) -> Pin {
    if let pin = try pinIfOpen(id, isNamed) { return pin }
    try reopen(id)
    // Between the two another thread may have needed the room; a few attempts make that as good as impossible.
    for _ in 0..<8 {
      if let pin = try pinIfOpen(id, isNamed) { return pin }
      try reopen(id)
    }
    throw .ENFILE
  }

  /// Lets the calls for extended attributes take a node's descriptor, if it is not the first time that they are made of it.
  ///
  /// They refuse one that only names its object, and the way around takes longer than they do. Opening a file for one call takes
  /// as long, so only who is asked again is opened, under the same number: others may be using it. Files and directories
  /// only: opening anything else would do something.
  func prepareForAttributes(_ pin: borrowing Pin, _ status: FileStatus) {
    guard status.isRegular || status.isDirectory else { return }
    let isAskedAgain = with(pin.id) { node in
      if node.flags.contains(.descriptorIsReadable) { return false }
      return !node.flags.insert(.attributesAsked).inserted
    }
    guard isAskedAgain == true, let opened = try? pin.fd.reopened(O_RDONLY | O_NONBLOCK | O_NOCTTY),
      (try? opened.fd.replace(pin.fd)) != nil
    else { return }
    _ = with(pin.id) { $0.flags.insert(.descriptorIsReadable) }
  }

  private func pinIfOpen(_ id: NodeID, _ isNamed: Bool) throws(Errno) -> Pin? {
    try state.withLock { (state) throws(Errno) -> Pin? in
      guard let index = state.index(of: id) else { throw .ESTALE }
      let node = state.slab[index]
      guard node.pointee.descriptor >= 0 else { return nil }
      node.pointee.pins += 1
      node.pointee.flags.insert(.recent)
      if isNamed { node.pointee.toldAt = 0 }
      return Pin(id, index, node.pointee, self)
    }
  }

  private func unpin(_ index: UInt32) {
    let freed = state.withLock { state -> Int32 in
      let node = state.slab[index]
      node.pointee.pins -= 1
      guard node.pointee.pins == 0, node.pointee.lookups == 0 else { return -1 }
      return state.remove(index)
    }
    if freed >= 0 { close(freed) }
  }

  private func reopen(_ id: NodeID) throws(Errno) {
    let known = state.withLock { state -> (handle: FileHandle, zone: Zone)? in
      state.index(of: id).map { (state.slab[$0].pointee.handle, state.slab[$0].pointee.zone) }
    }
    guard let (handle, zone) = known else { throw .ESTALE }
    if let handleRoot = zone.isSealedPlace ? quietRoot ?? handleRoot : handleRoot, self.handleRoot != nil,
      handle.length > 0
    {
      install(try openWithRoom { () throws(Errno) in try handleRoot.open(handle) }, for: id)
    } else {
      try reopenByName(id)
    }
  }

  /// Climbs to the nearest ancestor with a descriptor, and comes down by names.
  private func reopenByName(_ id: NodeID) throws(Errno) {
    var missing = [id]
    // Directories that someone has moved behind us may seem to be in one another: that ends where it is noticed.
    var mark = id
    while let child = missing.last, let parent = try parentIfClosed(of: child) {
      guard parent != mark else { throw .ESTALE }
      missing.append(parent)
      if missing.count & (missing.count - 1) == 0 { mark = parent }
    }
    while let child = missing.popLast() {
      guard let place = place(of: child) else { throw .ESTALE }
      let parent = try pin(place.parent, isNamed: false)
      let found = try place.name.withName { (name) throws(Errno) in
        do throws(Errno) {
          return try openWithRoom { () throws(Errno) in try parent.fd.child(name) }
        } catch .ENOENT {
          // It may have another name: at this answer the kernel looks up the one that it was asked for.
          throw .ESTALE
        }
      }
      let identity = Identity(try found.fd.status(), of: found.fd)
      let zone = with(child) { $0.matches(identity) ? $0.zone : nil } ?? nil
      guard let zone else { throw .ESTALE }
      let isOutermost = zone.isSealedPlace && !parent.zone.isSealedPlace
      install(isOutermost ? try quieted(found) : found, for: child)
    }
  }

  private func place(of id: NodeID) -> (parent: NodeID, name: String)? {
    state.withLock { state in
      guard let index = state.index(of: id), let name = state.slab[index].pointee.name,
        let parent = state.slab.slot(state.slab[index].pointee.parent), parent.pointee.flags.contains(.inUse)
      else { return nil }
      return (Self.id(state.slab[index].pointee.parent, parent.pointee.generation), String(cString: name))
    }
  }

  private func parentIfClosed(of id: NodeID) throws(Errno) -> NodeID? {
    guard let parent = place(of: id)?.parent else { throw .ESTALE }
    return with(parent) { $0.descriptor < 0 } == true ? parent : nil
  }

  private func install(_ object: consuming OwnedFD, for id: NodeID) {
    let raw = object.release().raw
    let excess = state.withLock { state -> Int32 in
      guard let index = state.index(of: id), state.slab[index].pointee.descriptor < 0 else { return raw }
      return state.adopt(raw, for: index, capacity: capacity)
    }
    if excess >= 0 { close(excess) }
  }

  /// Opens something; if the descriptor table is full, after giving up some that are only kept for speed.
  package func openWithRoom(_ open: () throws(Errno) -> OwnedFD) throws(Errno) -> OwnedFD {
    do throws(Errno) {
      return try open()
    } catch .EMFILE, .ENFILE {
      releaseDescriptors(64)
      return try open()
    }
  }

  /// Closes up to `count` descriptors that nobody is using.
  package func releaseDescriptors(_ count: Int) {
    for _ in 0..<count {
      let evicted = state.withLock { $0.evict() }
      if evicted < 0 { return }
      close(evicted)
    }
  }
}
