// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Synchronization

extension View {
  /// What was granted is in other places now.
  ///
  /// What is open stays so, and is found by its new name. `beside` is what belongs to a file that was granted from now on.
  func follow(
    _ claims: [(old: ScopePlace, new: ScopePlace)], _ moves: [ScopeMove], _ objects: [MovedObject],
    beside companion: [[UInt8]]? = nil
  ) {
    var followed: [Position: Position] = [:]
    var heads: [Position: ObjectNumber] = [:]
    scope.change { scope in
      for object in objects { if let head = scope.place(at: object.path) { heads[head] = object.number } }
      followed = scope.follow(claims, moves.map { (old: $0.old, new: $0.new) })
      if let companion { scope.addCompanion(at: companion) }
    }
    nodes.follow(followed, heads)
    settleScope()
  }

  /// Takes a place out of the view without waiting for what is under way.
  func drop(_ place: ScopePlace) {
    scope.change { $0.withdraw(place) }
    settleScope()
  }
}

extension NodeTable {
  /// Gives nodes that have been moved along with what was granted their positions there.
  ///
  /// `heads` are what has been moved and what is granted, by their positions: someone may have given the old name to something else
  /// meanwhile, and that is not followed, nor what is in it. What is between the two may not be known here.
  fileprivate func follow(_ followed: [Position: Position], _ heads: [Position: ObjectNumber]) {
    guard !followed.isEmpty else { return }
    state.withLock { state in
      var candidates: [UInt32: Position] = [:]
      state.slab.forEach { index, node in
        if followed[node.pointee.position] != nil { candidates[index] = node.pointee.position }
      }
      for (index, position) in candidates where state.isMoved(index, candidates, heads) {
        if let new = followed[position] { state.slab[index].pointee.position = new }
      }
    }
  }
}

extension NodeTableState {
  /// Whether a node is a head, or in one.
  fileprivate func isMoved(
    _ start: UInt32, _ candidates: [UInt32: Position], _ heads: [Position: ObjectNumber]
  ) -> Bool {
    var index = start
    // No deeper than a path.
    for _ in 0..<GrantPath.longest {
      guard let position = candidates[index] else { return false }
      let node = slab[index].pointee
      if let head = heads[position] {
        return head == ObjectNumber(inode: node.inode, device: node.device)
      }
      index = node.parent
    }
    return false
  }
}
