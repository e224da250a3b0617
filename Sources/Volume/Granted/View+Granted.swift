// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
package import Policy
internal import Synchronization

// What a user has granted an app, and takes back. It is never passed through, so every read and write is
// asked for here.

extension View {
  /// Puts a place into the view.
  ///
  /// The app finds it when this returns.
  package func admit(_ place: ScopePlace) {
    scope.change { $0.admit(place) }
    settleScope()
    makeRoom()
  }

  /// Takes a place out of the view: when this returns, nothing of it is found, read or written any more, be
  /// it through a descriptor or a memory map that was there before.
  ///
  /// Not from a request's own thread: it waits for requests.
  package func withdraw(_ place: ScopePlace) { withdraw([place]) }

  /// The same for several at once.
  func withdraw(_ places: Set<ScopePlace>) {
    // What has been stored in a map before this is not lost. Once the place is out no page comes to a map any
    // more, so the kernel comes to an end with what it has.
    grantedUse.beginDraining()
    scope.change { $0.withdraw(places) }
    settleScope()
    grantedUse.waitForAll()
    let open = files.all.filter { $0.isRevocable && !isGranted($0) }
    kernel.speak { kernel in for node in Set(open.map(\.node)) { kernel.contentsChanged(node) } }
    grantedUse.endDraining()
    grantedUse.waitForAll()
  }

  private func isGranted(_ file: OpenFile) -> Bool {
    reach(of: file.node).isSuperset(of: file.access.writes ? [.read, .write] : .read)
  }

  /// Makes what is known to the view and to its kernel fit the scope.
  func settleScope() {
    let places = nodes.settlePositions(scope)
    // Listings that the kernel keeps are as good as the attributes that it has.
    kernel.speak { kernel in
      for place in places { kernel.attributesChanged(place) }
      _ = kernel.entriesChanged()
    }
    releaseLocksOfLost()
  }

  /// Whether an open file was granted, and is no more.
  func hasLost(_ node: NodeID, _ handle: HandleID) -> Bool {
    (try? files.find(handle))?.isRevocable == true && reach(of: node).isEmpty
      && volume.grants.moving.withLock { _ in reach(of: node).isEmpty }
  }

  /// What an app has locked that it has no more would keep its user out.
  private func releaseLocksOfLost() {
    let lost = Set(files.all.filter { $0.isRevocable }.map(\.node)).filter { reach(of: $0).isEmpty }
    for object in lost.compactMap(lockedObject) { volume.locks.releaseAll(of: number, on: object) }
  }

  private func reach(of node: NodeID) -> Reach {
    // In one step, since positions may be numbered anew.
    nodes.with(node) { scope.reach(of: $0.position) } ?? .nothing
  }

  /// Whether what was granted may be used so.
  ///
  /// What is moved is for a moment neither where it was nor where it is then: who seems to have lost it looks
  /// again when nothing is being moved. Whoever moves grants waits for nobody who is here.
  private func mayUse(_ node: NodeID, _ wanted: Reach) -> Bool {
    reach(of: node).contains(wanted)
      || volume.grants.moving.withLock { _ in reach(of: node).contains(wanted) }
  }

  /// Reads or writes if that is still granted; EPERM if not.
  func whileGranted<Result>(
    _ node: NodeID, _ access: OpenFile.Access, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try grantedUse.during { () throws(Errno) in
      guard mayUse(node, access.writes ? .write : .read) else { throw .EPERM }
      return try body()
    }
  }

  /// Notes that something was opened that is still granted, so that one who takes it back knows of it.
  func addWhileGranted(_ file: OpenFile) throws(Errno) -> HandleID {
    try whileGranted(file.node, file.access) { () throws(Errno) in files.add(file) }
  }

  /// Writes what the kernel had in its page cache of a file that was taken back; nil if it was not.
  func writeBeforeEnd(
    _ node: NodeID, _ handle: HandleID, at offset: Int64, _ bytes: UnsafeRawBufferPointer
  ) throws(Errno) -> Int? {
    let file = try files.find(handle)
    // Through what may only append, nothing is written where it was.
    if file.access.contains(.append) { throw .EPERM }
    guard file.isRevocable, !mayUse(node, .write) else { return nil }
    return try grantedUse.during { () throws(Errno) in
      guard grantedUse.isDraining, let descriptor = file.descriptor else { throw .EPERM }
      return try descriptor.use { (fd) throws(Errno) in try fd.write(bytes, at: offset) }
    }
  }

  /// EPERM for the file through which databases share memory (`-shm`, of SQLite's write-ahead log).
  ///
  /// Maps of what was granted are the view's own, since only so they can be taken back, and without
  /// passthrough all maps are: two views that take them for shared memory would destroy the database.
  func refuseSharedMemory(_ node: NodeID) throws(Errno) {
    if nodes.with(node, { $0.flags.contains(.isSharedMemory) }) == true { throw .EPERM }
  }
}

extension NodeTable {
  /// Gives every node the position that it has by now; those that the scope has something to say about are
  /// the answer.
  func settlePositions(_ scope: ViewScope) -> [NodeID] {
    state.withLock { state in
      // As it is now, since others may be changing it and doing the same.
      let (settled, places) = state.settledPositions(scope.value)
      for (index, position) in settled { state.slab[index].pointee.position = position }
      return places.map { Self.id($0, state.slab[$0].pointee.generation) }
    }
  }
}

extension NodeTableState {
  /// The positions of nodes that have another one by now, and the nodes that have one of their own in the
  /// scope.
  fileprivate func settledPositions(_ scope: Scope) -> (changed: [UInt32: Position], places: [UInt32]) {
    var settled: [UInt32: Position] = [:]
    var places: [UInt32] = []
    slab.forEach { index, node in
      if !scope.isUniform(node.pointee.position) { places.append(index) }
      settle(index, scope, &settled)
    }
    return (settled.filter { slab[$0.key].pointee.position != $0.value }, places)
  }

  /// Works out a node's position from those above it, down from the first that is known.
  private func settle(_ start: UInt32, _ scope: Scope, _ settled: inout [UInt32: Position]) {
    var way: [UInt32] = []
    var index = start
    while settled[index] == nil, way.count < 100_000 {
      way.append(index)
      guard index != NodeTable.rootIndex, scope.isUniform(slab[index].pointee.position),
        let parent = slab.slot(slab[index].pointee.parent), parent.pointee.flags.contains(.inUse)
      else { break }
      index = slab[index].pointee.parent
    }
    for index in way.reversed() {
      let node = slab[index].pointee
      if !scope.isUniform(node.position) {
        // No name is looked up to find the root again.
        let hasGone = index != NodeTable.rootIndex && scope.reach(of: node.position).isEmpty
        settled[index] = hasGone ? .nowhere : node.position
      } else if node.position == .nowhere {
        settled[index] = .nowhere
      } else if let above = settled[node.parent], let parent = slab.slot(node.parent) {
        // One that has left the view takes all that is in it along, by what is still said of what was in it.
        let known = scope.isUniform(parent.pointee.position) ? above : parent.pointee.position
        settled[index] = position(of: node, in: known, scope)
      } else {
        settled[index] = node.position == .sibling ? .nowhere : node.position
      }
    }
  }

  /// The position of something that the scope has nothing to say about, in a directory of this one.
  private func position(of node: Node, in directory: Position, _ scope: Scope) -> Position {
    let isSibling = node.position == .sibling && scope.isSibling(SiblingObject(node.identity), in: directory)
    return isSibling ? .sibling : scope.inside(directory)
  }
}
