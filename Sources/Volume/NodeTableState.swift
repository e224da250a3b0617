// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

// Unchecked: its pointers lead only to what it owns, and are used only where it is locked.

/// What a node table's lock protects: the slots, the way to find them by object, and the clock of
/// descriptors.
struct NodeTableState: @unchecked Sendable {
  var slab: Slab<Node>
  var names: NodeNames
  /// The first node of each chain; as many as a power of two.
  private var buckets = [UInt32](repeating: 0, count: 1024)
  var bucketCount: Int { buckets.count }
  var generation: UInt32 = 0
  /// The slots whose descriptor may be closed, in the order in which the hand passes them.
  private(set) var clock: [UInt32] = []
  private var hand = 0
  /// How many descriptors are kept until their nodes go; the root's is not counted.
  private(set) var held = 0
  /// Who pays for them, in the place that a node then keeps instead of its place in the clock.
  private var payers = DescriptorPayers()
  /// Its locks are taken inside ours, and nothing inside them.
  private let budget: Budget?
  /// Where it is noted what this view knows; nil for the view that is asked itself.
  let interest: ViewInterest?
  /// How often a directory was entered, or moved after that.
  var timesEntered: UInt64 = 0
  var latestEntries = LatestEntries()
  var refusalRates = RefusalRates()
  /// What seals say of the nodes that are in read-only regions.
  var sealed: [UInt32: SealedNode] = [:]
  /// Those that another worker has left, and their descriptors.
  var left = LeftLookups()
  var descriptorsTakenOver: [Int32] = []

  init(in memory: ViewMemory, interest: ViewInterest? = nil, budget: Budget? = nil) {
    slab = Slab(in: memory.nodes)
    names = NodeNames(in: memory.names)
    self.interest = interest
    self.budget = budget
  }

  /// Makes the root's node, or takes it over with all others.
  mutating func beginAtRoot(
    _ identity: Identity, _ descriptor: Int32, _ zone: Zone, _ position: Position,
    takingOver: Bool = false, keepsDescriptors: Bool = true, capacity: Int
  ) throws(Errno) {
    if takingOver { restore() }
    if slab.slot(NodeTable.rootIndex)?.pointee.isInUse != true {
      // Where the root was lost, nothing that it led to can be trusted.
      slab.removeAll()
      guard slab.allocate() == NodeTable.rootIndex else { throw .ENOMEM }
    }
    setRoot(identity, descriptor, zone, position)
    if takingOver { adoptRestored(withDescriptors: keepsDescriptors, capacity: capacity) }
  }

  /// Fills in the root's slot, which has no other use.
  private mutating func setRoot(_ identity: Identity, _ descriptor: Int32, _ zone: Zone, _ position: Position)
  {
    let node = slab[NodeTable.rootIndex]
    node.initialize(to: Node())
    node.pointee.lookups = 1
    node.pointee.inode = identity.inode
    node.pointee.device = identity.device
    node.pointee.handle = identity.handle
    node.pointee.flags = [.inUse, .isDirectory, .descriptorIsLastHold]
    node.pointee.zone = zone
    node.pointee.position = position
    node.pointee.descriptor = descriptor
    node.pointee.clock = .max
    insert(NodeTable.rootIndex)
  }

  /// The slot that an id stands for, if it still does.
  func index(of id: NodeID) -> UInt32? {
    if id == .root { return NodeTable.rootIndex }
    let index = UInt32(truncatingIfNeeded: id.raw)
    guard let node = slab.slot(index), node.pointee.flags.contains(.inUse),
      node.pointee.generation == UInt32(truncatingIfNeeded: id.raw >> 32)
    else { return nil }
    return index
  }

  // MARK: By object

  func find(_ identity: Identity) -> UInt32? {
    var index = buckets[identity.hash & (buckets.count - 1)]
    while index != 0 {
      let node = slab[index]
      if node.pointee.matches(identity) { return index }
      index = node.pointee.next
    }
    return nil
  }

  /// Like ``find(_:)``, for an object that has a name now: no other has its number.
  ///
  /// The node of one that had it before may still be known, and is the older one.
  func find(_ object: ObjectNumber) -> UInt32? {
    var index = buckets[Identity.hash(inode: object.inode, device: object.device) & (buckets.count - 1)]
    var found: UInt32?
    while index != 0 {
      let node = slab[index]
      if node.pointee.number == object,
        found.map({ node.pointee.generation > slab[$0].pointee.generation }) ?? true
      {
        found = index
      }
      index = node.pointee.next
    }
    return found
  }

  /// How many nodes an object has.
  func count(of object: ObjectNumber) -> Int {
    var index = buckets[Identity.hash(inode: object.inode, device: object.device) & (buckets.count - 1)]
    var count = 0
    while index != 0 {
      let node = slab[index]
      if node.pointee.number == object { count += 1 }
      index = node.pointee.next
    }
    return count
  }

  /// A new node for an object that has none.
  mutating func make(_ identity: Identity, directory: Bool) -> UInt32? {
    guard let index = slab.allocate() else { return nil }
    // Never 0 with a small index: the root's id is 1.
    generation = generation == .max ? 1 : generation + 1
    let node = slab[index]
    node.pointee.inode = identity.inode
    node.pointee.device = identity.device
    node.pointee.handle = identity.handle
    node.pointee.generation = generation
    node.pointee.flags = directory ? [.inUse, .isDirectory] : .inUse
    node.pointee.updateCheck()
    insert(index)
    return index
  }

  mutating func insert(_ index: UInt32) {
    if slab.count > buckets.count { growBuckets() }
    let node = slab[index]
    let bucket = node.pointee.hash & (buckets.count - 1)
    node.pointee.next = buckets[bucket]
    buckets[bucket] = index
    interest?.add(node.pointee.number)
  }

  /// Has the CPU fetch the chain of a node that is inserted a little later: chains lie anywhere, and each of
  /// very many would be waited for.
  func expect(_ index: UInt32) {
    guard let node = slab.slot(index) else { return }
    let bucket = node.pointee.hash & (buckets.count - 1)
    buckets.withUnsafeBufferPointer { heads in
      if let first = heads.baseAddress { clx_prefetch(first + bucket) }
    }
  }

  /// Frees a node; gives the descriptor that is to be closed, or -1.
  mutating func remove(_ index: UInt32) -> Int32 {
    let node = slab[index]
    interest?.remove(node.pointee.number)
    let bucket = node.pointee.hash & (buckets.count - 1)
    if buckets[bucket] == index {
      buckets[bucket] = node.pointee.next
    } else {
      var before = slab[buckets[bucket]]
      while before.pointee.next != index { before = slab[before.pointee.next] }
      before.pointee.next = node.pointee.next
    }
    let descriptor = node.pointee.descriptor
    if node.pointee.flags.contains(.descriptorIsLastHold) {
      held -= 1
      giveBackHold(index)
    } else if descriptor >= 0 {
      leaveClock(index)
    }
    if node.pointee.zone.isReadOnlyRegion, sealed.removeValue(forKey: index) != nil, sealed.isEmpty {
      // A dictionary keeps the room that it once had.
      sealed = [:]
    }
    names.remove(node.pointee.name)
    slab.free(index)
    if buckets.count > 1024, slab.count < buckets.count / 8 { resizeBuckets(buckets.count / 4) }
    return descriptor
  }

  /// Gives everything back.
  ///
  /// The kernel does not forget what it knew when a connection ends.
  mutating func end() {
    slab.forEach { index, node in
      if node.pointee.descriptor >= 0 { close(node.pointee.descriptor) }
      if node.pointee.flags.contains(.descriptorIsLastHold) { giveBackHold(index) }
      interest?.remove(node.pointee.number)
    }
    slab.removeAll()
    names.removeAll()
    clock = []
    sealed = [:]
    payers = DescriptorPayers()
  }

  private mutating func growBuckets() { resizeBuckets(buckets.count * 2) }

  mutating func resizeBuckets(_ count: Int) {
    var resized = [UInt32](repeating: 0, count: count)
    for first in buckets {
      var index = first
      while index != 0 {
        let node = slab[index]
        let next = node.pointee.next
        let bucket = node.pointee.hash & (count - 1)
        node.pointee.next = resized[bucket]
        resized[bucket] = index
        index = next
      }
    }
    buckets = resized
  }

  // MARK: Descriptors

  /// Gives a node its descriptor; gives one that is to be closed for it, or -1.
  mutating func adopt(_ descriptor: Int32, for index: UInt32, capacity: Int) -> Int32 {
    let evicted = clock.count >= capacity ? evict() : -1
    let node = slab[index]
    node.pointee.descriptor = descriptor
    node.pointee.flags.insert(.recent)
    node.pointee.flags.remove(.descriptorIsReadable)
    if !node.pointee.flags.contains(.descriptorIsLastHold) {
      node.pointee.clock = UInt32(truncatingIfNeeded: clock.count)
      clock.append(index)
    }
    return evicted
  }

  /// From here on the node's descriptor is not closed before the node goes; unless `limit` others are kept so
  /// already.
  ///
  /// False if the payer has too many.
  mutating func holdDescriptor(_ index: UInt32, limit: Int, by payer: Payer) -> Bool {
    let node = slab[index]
    guard node.pointee.descriptor >= 0, !node.pointee.flags.contains(.descriptorIsLastHold), held < limit
    else { return true }
    if let budget, !budget.takeQuietly(.descriptors, by: payer) { return false }
    leaveClock(index)
    node.pointee.clock = budget == nil ? .max : payers.add(payer)
    held += 1
    node.pointee.flags.insert(.descriptorIsLastHold)
    return true
  }

  /// Takes over a descriptor that another worker has kept so; nobody is charged for it any more.
  mutating func keepHeld(_ descriptor: Int32, _ index: UInt32) {
    let node = slab[index]
    node.pointee.descriptor = descriptor
    node.pointee.clock = .max
    held += 1
  }

  private mutating func giveBackHold(_ index: UInt32) {
    let place = slab[index].pointee.clock
    guard let budget, place != .max else { return }
    budget.give(.descriptors, by: payers.remove(place))
  }

  /// The node can be found again, so its descriptor may be closed like any other.
  mutating func releaseHold(_ index: UInt32) {
    let node = slab[index]
    guard index != NodeTable.rootIndex, node.pointee.flags.remove(.descriptorIsLastHold) != nil else {
      return
    }
    held -= 1
    giveBackHold(index)
    node.pointee.clock = UInt32(truncatingIfNeeded: clock.count)
    clock.append(index)
  }

  /// Whether a node's object would be looked for under this name.
  func isKnown(_ index: UInt32, as name: Name, in parent: NodeID) -> Bool {
    let node = slab[index]
    return node.pointee.parent == UInt32(truncatingIfNeeded: parent.raw)
      && names.matches(node.pointee.name, name)
  }

  /// Keeps a name to find a node's object by.
  mutating func remember(_ name: Name, of index: UInt32) {
    let node = slab[index]
    if names.matches(node.pointee.name, name) { return }
    let new = names.add(name)
    let old = node.pointee.name
    node.pointee.name = new
    names.remove(old)
  }

  /// Takes the descriptor from a node that has not been used for a while; -1 if all are in use.
  mutating func evict() -> Int32 {
    // Twice around: the first pass clears the marks of those used since the last.
    for _ in 0..<(2 * clock.count) {
      if hand >= clock.count { hand = 0 }
      let index = clock[hand]
      let node = slab[index]
      if node.pointee.references > 0 {
        hand += 1
      } else if node.pointee.flags.contains(.recent) {
        node.pointee.flags.remove(.recent)
        hand += 1
      } else {
        let descriptor = node.pointee.descriptor
        node.pointee.descriptor = -1
        leaveClock(index)
        return descriptor
      }
    }
    return -1
  }

  /// The last in the clock takes the place of the one that leaves.
  private mutating func leaveClock(_ index: UInt32) {
    let position = Int(slab[index].pointee.clock)
    let last = clock.removeLast()
    guard last != index else { return }
    clock[position] = last
    slab[last].pointee.clock = UInt32(truncatingIfNeeded: position)
  }

  // MARK: Zones

  /// Gives a node its zone, unless a seal speaks of it: one that someone behind us has given another name
  /// stays what it is, or that name would be a way to change it.
  func setZone(_ zone: Zone, of index: UInt32) {
    let node = slab[index]
    if node.pointee.zone.isReadOnlyRegion, sealed[index] != nil { return }
    if node.pointee.zone != zone { node.pointee.zone = zone }
  }

  /// Notes what a seal says of a node, and keeps what was found out by that.
  mutating func seal(_ index: UInt32, _ new: SealedNode) {
    if let known = sealed[index], known.seal === new.seal, known.position == new.position { return }
    sealed[index] = new
  }

  /// Gives every known node below a directory that has moved the zone that it now has, but for names that
  /// matter.
  ///
  mutating func rezone(below top: UInt32) {
    let zone = slab[top].pointee.zone.inside
    forEach(below: top) { index, _ in setZone(zone, of: index) }
  }

  /// Gives every known node below a directory that has moved to another part of a view's scope its position.
  ///
  /// In a place that the scope has something to say about, what is below is looked for again by names.
  func reposition(below top: UInt32, to position: Position) {
    forEach(below: top) { _, node in node.pointee.setPosition(position) }
  }

  /// Visits every known node below a directory: a look at every node, for a rare event, such as that a
  /// directory moves from one domain to another, or to where containers are.
  private func forEach(below top: UInt32, _ body: (UInt32, UnsafeMutablePointer<Node>) -> Void) {
    slab.forEach { index, node in
      var ancestor = node.pointee.parent
      // No tree is as deep as this; it only bounds what a damaged one could do.
      var depth = 0
      while ancestor > NodeTable.rootIndex, depth < 100_000 {
        if ancestor == top { return body(index, node) }
        guard let next = slab.slot(ancestor), next.pointee.flags.contains(.inUse) else { return }
        ancestor = next.pointee.parent
        depth += 1
      }
    }
  }
}
