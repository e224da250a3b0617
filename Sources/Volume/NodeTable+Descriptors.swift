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
  /// A node in use by a request.
  ///
  /// It and its descriptor stay as long as this exists.
  package struct Reference: ~Copyable {
    package let id: NodeID
    package let fd: FD
    package let zone: Zone
    /// Where it is in the view's scope.
    let position: Position
    /// The object's number, for tables of objects.
    let number: ObjectNumber
    /// The volume that it lies on; 0 for the tree itself.
    let volume: UInt32
    /// Whether others than the daemon may change it at any time.
    package var isOnVolume: Bool { volume != 0 }
    /// In which epoch the kernel was last told names of the directory, when the request began.
    let namesEpoch: UInt16
    /// What was known of the object's ACL and flags when the request began.
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
      volume = node.volume
      namesEpoch = node.namesEpoch
      security = KnownSecurity(node.flags)
      self.table = table
    }

    deinit { table.release(index) }

    /// Whether it still has the zone and the position that it had when the request began.
    func isWhereItWas(_ state: borrowing NodeTableState) -> Bool {
      let node = state.slab[index].pointee
      return node.zone == zone && node.position == position
    }
  }

  /// Takes a reference to a node for a request.
  ///
  /// ESTALE if the ID is stale or the object is gone; ENOENT if it has left the view. `isNamed`: the kernel's
  /// request names the node, so the kernel has processed the reply that introduced it.
  package func reference(to id: NodeID, isNamed: Bool = true) throws(Errno) -> Reference {
    let reference = try referenceAnywhere(to: id, isNamed: isNamed)
    guard reference.position != .nowhere else { throw .ENOENT }
    return reference
  }

  /// Takes a reference to a node that may have left the view.
  func referenceAnywhere(to id: NodeID, isNamed: Bool) throws(Errno) -> Reference {
    if let reference = try referenceIfOpen(to: id, isNamed) { return reference }
    try reopen(id)
    // Another thread may evict the descriptor in between. A few attempts make a failure practically
    // impossible.
    for _ in 0..<8 {
      if let reference = try referenceIfOpen(to: id, isNamed) { return reference }
      try reopen(id)
    }
    throw .ENFILE
  }

  /// Lets the calls for extended attributes take a node's descriptor, if it is not the first time that they
  /// are made of it.
  ///
  /// These calls refuse an O_PATH descriptor, and the detour through /proc takes longer than the call itself.
  /// Opening a file for a single call takes as long, so a node is opened only at the second call, and under
  /// the same descriptor number, since others may be using it. Only files and directories are opened: opening
  /// anything else has side effects.
  func prepareForAttributes(_ reference: borrowing Reference, _ status: FileStatus) {
    guard status.isRegular || status.isDirectory else { return }
    // To close it, on whatever thread, could mean to wait for a server.
    if reference.isOnVolume, attached?.queue(ofDevice: reference.number.device) != nil { return }
    let isAskedAgain = with(reference.id) { node in
      if node.flags.contains(.descriptorIsReadable) { return false }
      return !node.flags.insert(.attributesAsked).inserted
    }
    guard isAskedAgain == true, let opened = try? reference.fd.reopened(O_RDONLY | O_NONBLOCK | O_NOCTTY),
      (try? opened.fd.replace(reference.fd)) != nil
    else { return }
    _ = with(reference.id) { $0.flags.insert(.descriptorIsReadable) }
  }

  private func referenceIfOpen(to id: NodeID, _ isNamed: Bool) throws(Errno) -> Reference? {
    try state.withLock { (state) throws(Errno) -> Reference? in
      guard let index = state.index(of: id) else { throw .ESTALE }
      let node = state.slab[index]
      guard node.pointee.descriptor >= 0 else { return nil }
      node.pointee.references += 1
      node.pointee.flags.insert(.recent)
      if isNamed { node.pointee.entrySentAt = 0 }
      return Reference(id, index, node.pointee, self)
    }
  }

  private func release(_ index: UInt32) {
    let freed = state.withLock { state -> Int32 in
      let node = state.slab[index]
      node.pointee.references -= 1
      guard node.pointee.references == 0, node.pointee.lookups == 0 else { return -1 }
      return state.remove(index)
    }
    if freed >= 0 { close(freed) }
  }

  private func reopen(_ id: NodeID) throws(Errno) {
    let known = state.withLock { state -> (handle: FileHandle, zone: Zone, volume: UInt32)? in
      state.index(of: id).map {
        (state.slab[$0].pointee.handle, state.slab[$0].pointee.zone, state.slab[$0].pointee.volume)
      }
    }
    guard let (handle, zone, number) = known else { throw .ESTALE }
    if let object = try open(handle, on: number, zone) {
      install(object, for: id)
    } else {
      try reopenByName(id)
    }
  }

  /// Opens an object of a volume, or of the tree itself, by its handle; nil where that can't be.
  func open(_ handle: FileHandle, on number: UInt32, _ zone: Zone) throws(Errno) -> OwnedFD? {
    if number != 0, handleRoot != nil, let volume = attached?.volume(numbered: number),
      volume.engine.usesHandles
    {
      return try openWithRoom { () throws(Errno) in try volume.open(handle) }
    }
    guard number == 0, let handleRoot = zone.isReadOnlyRegion ? noatimeRoot ?? handleRoot : handleRoot,
      self.handleRoot != nil, handle.length > 0
    else { return nil }
    return try openWithRoom { () throws(Errno) in try handleRoot.open(handle) }
  }

  /// Climbs to the nearest ancestor with a descriptor, and comes down by names.
  private func reopenByName(_ id: NodeID) throws(Errno) {
    var missing = [id]
    // Directories that were moved behind the daemon's back may seem to contain each other. The mark detects
    // the cycle.
    var mark = id
    while let child = missing.last, let parent = try parentIfClosed(of: child) {
      guard parent != mark else { throw .ESTALE }
      missing.append(parent)
      if missing.count & (missing.count - 1) == 0 { mark = parent }
    }
    while let child = missing.popLast() {
      guard let place = place(of: child) else { throw .ESTALE }
      let parent = try referenceAnywhere(to: place.parent, isNamed: false)
      let found = try place.name.withName { (name) throws(Errno) in
        do throws(Errno) {
          return try openWithRoom { () throws(Errno) in
            guard parent.zone.mayHoldVolumes, place.volume != 0, let attached else {
              return try parent.fd.child(name)
            }
            guard let found = attached.volume(numbered: place.volume) else { throw .ENOENT }
            return try found.open()
          }
        } catch .ENOENT {
          // It may have another name. On ESTALE the kernel looks up the path again.
          throw .ESTALE
        }
      }
      let identity = Identity(try found.fd.status(), of: found.fd)
      let known = with(child) { $0.matches(identity) ? ($0.zone, $0.isOnVolume) : nil } ?? nil
      guard let (zone, isOnVolume) = known else { throw .ESTALE }
      let isOutermost = zone.isReadOnlyRegion && !parent.zone.isReadOnlyRegion && !isOnVolume
      install(isOutermost ? try reopenedNoatime(found) : found, for: child)
    }
  }

  private func place(of id: NodeID) -> (parent: NodeID, name: [UInt8], volume: UInt32)? {
    state.withLock { state in
      guard let index = state.index(of: id), let name = state.names.text(state.slab[index].pointee.name),
        let parent = state.slab.slot(state.slab[index].pointee.parent), parent.pointee.flags.contains(.inUse)
      else { return nil }
      let node = state.slab[index].pointee
      return (Self.id(node.parent, parent.pointee.generation), name, node.volume)
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
