// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
package import Policy
internal import Synchronization

// Descriptors of nodes: found where there is one, opened again where there is none.

extension NodeTable {
  /// A node in use by a request: it stays, and so does its descriptor.
  package struct Pin: ~Copyable {
    package let id: NodeID
    package let fd: FD
    package let zone: Zone
    /// Where it is in the view's scope.
    let position: Position
    /// The object's number, for tables of objects.
    let number: ObjectNumber
    /// In which epoch the kernel was last told names of the directory, when the request began.
    let namesEpoch: UInt16
    /// What was known of the object's list and flags when the request began.
    let security: KnownSecurity
    let index: UInt32
    private unowned let table: NodeTable

    fileprivate init(_ id: NodeID, _ index: UInt32, _ node: Node, _ table: NodeTable) {
      self.id = id
      self.index = index
      fd = FD(node.descriptor)
      zone = node.zone
      position = node.position
      number = node.number
      namesEpoch = node.namesEpoch
      security = KnownSecurity(node.flags)
      self.table = table
    }

    deinit { table.unpin(index) }

    /// Whether it is in the zone and the place in which it was when the request began.
    func isWhereItWas(_ state: borrowing NodeTableState) -> Bool {
      let node = state.slab[index].pointee
      return node.zone == zone && node.position == position
    }
  }

  /// Holds a node for a request.
  ///
  /// ESTALE if the kernel has no business with it, or its object is gone; ENOENT if it has left the view.
  /// `isNamed` says that the kernel has named the node, and so has taken in the answer that told it of it.
  package func pin(_ id: NodeID, isNamed: Bool = true) throws(Errno) -> Pin {
    let pin = try pinWherever(id, isNamed: isNamed)
    guard pin.position != .nowhere else { throw .ENOENT }
    return pin
  }

  /// Holds a node that may have left the view.
  func pinWherever(_ id: NodeID, isNamed: Bool) throws(Errno) -> Pin {
    if let pin = try pinIfOpen(id, isNamed) { return pin }
    try reopen(id)
    // Between the two another thread may have needed the room; a few attempts make that as good as
    // impossible.
    for _ in 0..<8 {
      if let pin = try pinIfOpen(id, isNamed) { return pin }
      try reopen(id)
    }
    throw .ENFILE
  }

  /// Lets the calls for extended attributes take a node's descriptor, if it is not the first time that they
  /// are made of it.
  ///
  /// They refuse one that only names its object, and the way around takes longer than they do. Opening a file
  /// for one call takes as long, so only who is asked again is opened, under the same number: others may be
  /// using it. Files and directories only: opening anything else would do something.
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
    // Directories that someone has moved behind us may seem to be in one another: that ends where it is
    // noticed.
    var mark = id
    while let child = missing.last, let parent = try parentIfClosed(of: child) {
      guard parent != mark else { throw .ESTALE }
      missing.append(parent)
      if missing.count & (missing.count - 1) == 0 { mark = parent }
    }
    while let child = missing.popLast() {
      guard let place = place(of: child) else { throw .ESTALE }
      let parent = try pinWherever(place.parent, isNamed: false)
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

  func install(_ object: consuming OwnedFD, for id: NodeID) {
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
