// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
package import Policy
internal import Synchronization

/// What a user has granted an app, and takes back, in one of its views.
///
/// It is never passed through, so every read and write is asked for here.
package final class GrantedFiles: Sendable {
  let volume: Volume
  let view: UInt32
  let scope: ViewScope
  let nodes: NodeTable
  let kernel: KernelLink
  private let files: OpenFiles
  private let gate: Gate
  /// What is read and written now of what was granted, and what may still be written back.
  let use = GrantedUse()
  /// The same on volumes that may not answer.
  private let slowUse = GrantedUse()
  private let contents: LostContents
  /// How long who takes something back waits for those: they may wait for a volume, or for a file whose lock
  /// somebody holds in the kernel.
  private static let patienceNanoseconds: UInt64 = 2_000_000_000

  init(
    _ volume: Volume, view: UInt32, _ scope: ViewScope, _ nodes: NodeTable, _ kernel: KernelLink,
    _ files: OpenFiles, _ gate: Gate
  ) {
    self.volume = volume
    self.view = view
    self.scope = scope
    self.nodes = nodes
    self.kernel = kernel
    contents = LostContents(kernel, nodes)
    self.files = files
    self.gate = gate
  }

  /// Puts a place into the view.
  ///
  /// The app finds it when this returns.
  package func admit(_ place: ScopePlace) {
    scope.change { $0.admit(place) }
    applyScope()
    makeRoom()
  }

  /// Removes a location from the view.
  ///
  /// When this returns, nothing in it can be found, read or written any more, not even through descriptors
  /// and memory maps that existed before.
  ///
  /// While a volume does not answer, or somebody holds a file, what the kernel has kept of these files can be
  /// read until that is over; and what is being written may be. Then this is false.
  ///
  /// Not from a request's own thread: it waits for requests.
  @discardableResult
  package func withdraw(_ place: ScopePlace) -> Bool { Self.withdraw([place], from: [self]) }

  /// The same for several places and views of a user at once.
  @discardableResult
  static func withdraw(_ places: Set<ScopePlace>, from views: [GrantedFiles]) -> Bool {
    for view in views { view.beginChange(withdrawing: places) }
    return finish(views)
  }

  /// Puts places into the view, and takes others out: nothing of those is found any more when this returns.
  ///
  /// It waits for nothing, so it can be done for all users before one is waited for by ``finish(_:)``.
  func beginChange(admitting admitted: [ScopePlace] = [], withdrawing withdrawn: Set<ScopePlace>) {
    // Data that was stored through a memory map before this call is not lost. Once the location is out of the
    // scope, page faults fail, so the kernel's write-back comes to an end.
    use.beginDraining()
    slowUse.beginDraining()
    scope.change { scope in
      for place in admitted { scope.admit(place) }
      scope.withdraw(withdrawn)
    }
    applyScope()
  }

  /// Waits for what is under way in what views have lost, for some seconds at most; false if that is over.
  static func finish(_ views: [GrantedFiles]) -> Bool {
    let end = monotonicNanoseconds() + patienceNanoseconds
    var areDone = true
    for view in views where !view.finishWithdrawal(until: end) { areDone = false }
    return areDone
  }

  private func finishWithdrawal(until end: UInt64) -> Bool {
    let isOver = use.waitForAll(until: end)
    let answers = slowUse.waitForAll(until: end)
    let lost = Set(files.all.filter { $0.isRevocable && !isGranted($0) }.map(\.node))
    let slow = lost.filter(mayNotAnswer)
    // Other volumes than the one that does not answer take a moment, whenever it is this view's turn.
    let moment = max(
      end + Self.patienceNanoseconds / 4, monotonicNanoseconds() + Self.patienceNanoseconds / 20)
    // Where nothing is known to hang, a disk may have much to write back.
    let long = isOver ? end + 4 * Self.patienceNanoseconds : moment
    let isForgotten = contents.forget(lost.subtracting(slow), until: long, again: isOver)
    let slowIsForgotten = contents.forget(slow, until: moment, again: false)
    use.endDraining()
    slowUse.endDraining()
    let isWritten = isOver && isForgotten && use.waitForAll(until: long + Self.patienceNanoseconds)
    let slowIsWritten =
      answers && slowIsForgotten && slowUse.waitForAll(until: end + Self.patienceNanoseconds)
    return isWritten && slowIsWritten
  }

  /// Whether something lies on a volume that a server or a program serves, or did.
  private func mayNotAnswer(_ node: NodeID) -> Bool {
    guard volume.attached.hasQueues,
      let (number, isOnVolume) = nodes.with(node, { ($0.number, $0.isOnVolume) }), isOnVolume
    else { return false }
    let attached = volume.attached.volume(onDevice: number.device)
    return attached == nil || attached?.engine.queue != nil
  }

  private func isGranted(_ file: OpenFile) -> Bool {
    reach(of: file.node).isSuperset(of: file.access.writes ? [.read, .write] : .read)
  }

  /// Some paths are those of disks from now on, of which nothing is there yet.
  func compareBytes(below paths: [[[UInt8]]]) {
    if !paths.isEmpty { scope.change { scope in for path in paths { scope.compareBytes(below: path) } } }
  }

  /// Brings the nodes of the view, and its kernel, in line with the scope.
  func applyScope() {
    let places = nodes.updatePositions(scope)
    // The kernel's cached listings are valid as long as its attributes are.
    kernel.notify { kernel in
      for place in places { kernel.attributesChanged(place) }
      _ = kernel.entriesChanged()
    }
    releaseLocksOfLost()
  }

  /// Whether an open file was granted, and is no more.
  func hasLost(_ node: NodeID, _ handle: HandleID) -> Bool {
    (try? files.find(handle))?.isRevocable == true && reach(of: node).isEmpty
      && volume.grants.moving.withLock(of: user) { reach(of: node).isEmpty }
  }

  /// Locks on files that the app has lost would block its user.
  private func releaseLocksOfLost() {
    let lost = Set(files.all.filter { $0.isRevocable }.map(\.node)).filter { reach(of: $0).isEmpty }
    for object in lost.compactMap({ nodes.number(of: $0) }) { volume.locks.releaseAll(of: view, on: object) }
  }

  private var user: Set<UInt32> { gate.audience.user.map { [$0] } ?? [] }

  private func reach(of node: NodeID) -> Reach { nodes.reach(of: node, in: scope) }

  /// Reads or writes if that is still granted; EPERM if not.
  func whileGranted<Result>(
    _ node: NodeID, _ access: OpenFile.Access, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    let authorize = { () throws(Errno) in
      try self.gate.authorizeUse(of: node, access.writes ? .write : .read)
    }
    return try (mayNotAnswer(node) ? slowUse : use).during(isLate: authorize) { () throws(Errno) in
      try authorize()
      return try body()
    }
  }

  /// Records an open file while the grant still holds, so that a revocation finds it.
  func add(_ file: OpenFile) throws(Errno) -> HandleID {
    try whileGranted(file.node, file.access) { () throws(Errno) in files.add(file) }
  }

  /// Writes what the kernel had in its page cache of a file that was taken back; nil if it was not.
  func writeBeforeEnd(
    _ file: OpenFile, at offset: Int64, _ bytes: UnsafeRawBufferPointer
  ) throws(Errno) -> Int? {
    try gate.authorizeOverwriting(file.access)
    guard file.isRevocable else { return nil }
    let decision = gate.decisionOnUse(of: file.node, .write)
    guard case .deny = decision else { return nil }
    let use = mayNotAnswer(file.node) ? slowUse : use
    return try use.during { () throws(Errno) in
      let isBeforeEnd = use.isDraining || contents.has(file.node)
      if !isBeforeEnd || file.descriptor == nil { try decision.enforce() }
      return try file.descriptor?.use { (fd) throws(Errno) in try fd.write(bytes, at: offset) }
    }
  }
}

extension NodeTable {
  func reach(of node: NodeID, in scope: ViewScope) -> Reach {
    // In one step, since positions may be numbered again.
    with(node) { scope.reach(of: $0.position) } ?? .nothing
  }

  /// Gives every node the position that it has by now; those that the scope has something to say about are
  /// the answer.
  func updatePositions(_ scope: ViewScope) -> [NodeID] {
    state.withLock { state in
      // As it is now, since others may be changing it and doing the same.
      let (settled, places) = state.currentPositions(scope.value)
      for (index, position) in settled { state.slab[index].pointee.setPosition(position) }
      for place in places { state.slab[place].pointee.listsOtherNames() }
      return places.map { Self.id($0, state.slab[$0].pointee.generation) }
    }
  }
}

extension NodeTableState {
  /// The positions of nodes that have another one by now, and the nodes that have one of their own in the
  /// scope.
  fileprivate func currentPositions(_ scope: Scope) -> (changed: [UInt32: Position], places: [UInt32]) {
    var settled: [UInt32: Position] = [:]
    var places: [UInt32] = []
    slab.forEach { index, node in
      if !scope.isUniform(node.pointee.position) { places.append(index) }
      updatePosition(index, scope, &settled)
    }
    return (settled.filter { slab[$0.key].pointee.position != $0.value }, places)
  }

  /// Works out a node's position from those above it, down from the first that is known.
  private func updatePosition(_ start: UInt32, _ scope: Scope, _ settled: inout [UInt32: Position]) {
    var ancestors: [UInt32] = []
    var index = start
    while settled[index] == nil, ancestors.count < 100_000 {
      ancestors.append(index)
      guard index != NodeTable.rootIndex, scope.isUniform(slab[index].pointee.position),
        let parent = slab.slot(slab[index].pointee.parent), parent.pointee.flags.contains(.inUse)
      else { break }
      index = slab[index].pointee.parent
    }
    for index in ancestors.reversed() {
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
