// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse

/// Locks in order, in a balanced tree (a treap) without pointers: to find, add or remove one takes as many
/// steps as the logarithm of how many there are.
///
/// No holder has two locks on one byte, so a lock is known by its holder and its first byte.
struct LockTree {
  enum Order {
    /// By the first byte, then the holder: to find what stands against a range.
    case byPlace
    /// By the holder, then the first byte: to find what someone has.
    case byHolder
  }
  private struct Node {
    var lock: HeldLock
    /// By chance, so that nobody can make the tree deep.
    let priority: UInt64
    var left: Int32 = none
    var right: Int32 = none
    /// Of the locks from here on down.
    var reach = LockReach()
    var writeReach = LockReach()
  }
  private static let none: Int32 = -1
  private static let seed = UInt64.random(in: 0 ... .max)

  private var nodes: [Node] = []
  private var free: [Int32] = []
  private var root = none
  private let order: Order
  private var inserted: UInt64 = 0

  init(_ order: Order) { self.order = order }

  var count: Int { nodes.count - free.count }

  mutating func insert(_ lock: HeldLock) {
    inserted &+= 1
    let node = Node(lock: lock, priority: Self.mixed(inserted))
    let new: Int32
    if let index = free.popLast() {
      new = index
      nodes[Int(new)] = node
    } else {
      new = Int32(nodes.count)
      nodes.append(node)
    }
    update(new)
    let (before, after) = split(root, before: lock)
    root = merge(merge(before, new), after)
  }

  mutating func remove(_ lock: HeldLock) {
    root = removing(lock, from: root)
    // What a flood of locks took is released.
    if count == 0 { self = LockTree(order) }
  }

  /// The first lock by place of anyone but `holder` that overlaps a range; of those for writing where
  /// `wanted` is for reading.
  func conflict(with wanted: LockRange, by holder: LockHolder) -> HeldLock? {
    let writesOnly = wanted.kind == .read
    var at = root
    while at != Self.none {
      let node = nodes[Int(at)]
      if reach(node.left, writesOnly, besides: holder) >= wanted.first {
        // One there reaches far enough: it overlaps, or it begins behind the range, and then all others do.
        at = node.left
        continue
      }
      guard node.lock.range.first <= wanted.last else { return nil }
      if node.lock.holder != holder, node.lock.range.last >= wanted.first,
        !writesOnly || node.lock.range.kind == .write
      {
        return node.lock
      }
      at = node.right
    }
    return nil
  }

  /// What a holder has that overlaps a range or lies right beside it; by holder only.
  func touching(_ range: LockRange, of holder: LockHolder) -> [HeldLock] {
    var found: [HeldLock] = []
    visit(root, &found) { lock in
      if lock.holder != holder { return lock.holder < holder ? .after : .before }
      if lock.range.touches(range) { return .both }
      return lock.range.first < range.first ? .after : .before
    }
    return found
  }

  /// What holders have; by holder only.
  func all(where side: (LockHolder) -> Side) -> [HeldLock] {
    var found: [HeldLock] = []
    visit(root, &found) { side($0.holder) }
    return found
  }

  /// All of them, in order.
  var all: [HeldLock] { all { _ in .both } }

  /// Where to look on from a lock: on one side, or it is one of those that are looked for.
  enum Side { case before, after, both }

  // MARK: Inside

  private func visit(_ at: Int32, _ found: inout [HeldLock], _ look: (HeldLock) -> Side) {
    guard at != Self.none else { return }
    let node = nodes[Int(at)]
    let side = look(node.lock)
    if side != .after { visit(node.left, &found, look) }
    if side == .both { found.append(node.lock) }
    if side != .before { visit(node.right, &found, look) }
  }

  private func reach(_ at: Int32, _ writesOnly: Bool, besides holder: LockHolder) -> Int64 {
    guard at != Self.none else { return -1 }
    return writesOnly
      ? nodes[Int(at)].writeReach.besides(holder) : nodes[Int(at)].reach.besides(holder)
  }

  /// A number that nobody can foresee.
  private static func mixed(_ number: UInt64) -> UInt64 {
    var value = number &* 0x9e37_79b9_7f4a_7c15 &+ seed
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }

  private func isBefore(_ a: HeldLock, _ b: HeldLock) -> Bool {
    switch order {
    case .byPlace: a.range.first != b.range.first ? a.range.first < b.range.first : a.holder < b.holder
    case .byHolder: a.holder != b.holder ? a.holder < b.holder : a.range.first < b.range.first
    }
  }

  /// Works out what is noted of the locks below a node.
  private mutating func update(_ at: Int32) {
    let node = nodes[Int(at)]
    var reach = LockReach()
    var writeReach = LockReach()
    reach.add(node.lock.range.last, node.lock.holder)
    if node.lock.range.kind == .write { writeReach = reach }
    for child in [node.left, node.right] where child != Self.none {
      reach.add(nodes[Int(child)].reach)
      writeReach.add(nodes[Int(child)].writeReach)
    }
    nodes[Int(at)].reach = reach
    nodes[Int(at)].writeReach = writeReach
  }

  /// What comes before a lock, and what comes after.
  private mutating func split(_ at: Int32, before lock: HeldLock) -> (Int32, Int32) {
    guard at != Self.none else { return (Self.none, Self.none) }
    if isBefore(nodes[Int(at)].lock, lock) {
      let (before, after) = split(nodes[Int(at)].right, before: lock)
      nodes[Int(at)].right = before
      update(at)
      return (at, after)
    }
    let (before, after) = split(nodes[Int(at)].left, before: lock)
    nodes[Int(at)].left = after
    update(at)
    return (before, at)
  }

  private mutating func merge(_ a: Int32, _ b: Int32) -> Int32 {
    guard a != Self.none else { return b }
    guard b != Self.none else { return a }
    if nodes[Int(a)].priority > nodes[Int(b)].priority {
      nodes[Int(a)].right = merge(nodes[Int(a)].right, b)
      update(a)
      return a
    }
    nodes[Int(b)].left = merge(a, nodes[Int(b)].left)
    update(b)
    return b
  }

  private mutating func removing(_ lock: HeldLock, from at: Int32) -> Int32 {
    guard at != Self.none else { return at }
    let node = nodes[Int(at)]
    if isBefore(node.lock, lock) {
      nodes[Int(at)].right = removing(lock, from: node.right)
    } else if isBefore(lock, node.lock) {
      nodes[Int(at)].left = removing(lock, from: node.left)
    } else {
      free.append(at)
      return merge(node.left, node.right)
    }
    update(at)
    return at
  }
}
