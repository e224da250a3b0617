// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

extension GrantedFiles {
  /// Grants have moved to other paths; afterwards some of them change.
  ///
  /// Open files stay open, and are found by their new names: a renamed location keeps its position.
  func follow(_ moves: [ScopeMove], _ changes: [(old: ScopePlace, new: ScopePlace)] = []) {
    var followed = Scope.Followed()
    scope.change { scope in
      followed = scope.follow(moves.map { (old: $0.old, new: $0.new) })
      for change in changes {
        scope.withdraw(change.old)
        scope.admit(change.new)
      }
    }
    if followed.isElsewhere || !changes.isEmpty {
      applyScope()
    } else {
      updatePassages(followed.passages)
    }
    makeRoom()
  }

  /// Makes what is known of directories that lead to what was granted fit the scope, and nothing else: a
  /// rename must not cost the more the more an app knows of what it was granted.
  private func updatePassages(_ passages: Set<Position>) {
    let known = nodes.updatePassages(passages, scope)
    kernel.notify { kernel in
      for directory in known { kernel.attributesChanged(directory) }
      _ = kernel.entriesChanged()
    }
  }

  /// Takes a place out of the view without waiting for what is under way.
  func drop(_ place: ScopePlace) {
    scope.change { $0.withdraw(place) }
    applyScope()
  }

  /// Compacts the scope if much of it is unused.
  ///
  /// Must not run while grants are being moved.
  func makeRoom() { nodes.renumber(scope) }
}

extension NodeTable {
  /// Takes the directories out of the view that lead to nothing any more; those that the kernel knows are
  /// the answer.
  fileprivate func updatePassages(_ passages: Set<Position>, _ scope: ViewScope) -> [NodeID] {
    state.withLock { state in
      let scope = scope.value
      var isPassage = [Bool](repeating: false, count: Int(UInt16.max) + 1)
      for position in passages { isPassage[Int(position.raw)] = true }
      var known: [UInt32] = []
      state.slab.forEach { index, node in if isPassage[Int(node.pointee.position.raw)] { known.append(index) }
      }
      for index in known where index != Self.rootIndex {
        let node = state.slab[index]
        node.pointee.listsOtherNames()
        if scope.reach(of: node.pointee.position).isEmpty { node.pointee.position = .nowhere }
      }
      return known.map { Self.id($0, state.slab[$0].pointee.generation) }
    }
  }

  /// Gives nodes new positions where the scope numbers its places again.
  ///
  /// Only while no request has a node whose position is a number: it could take that for what it meant
  /// before. Then another change of the scope will come.
  fileprivate func renumber(_ scope: ViewScope) {
    guard scope.ask({ $0.isCrowded }) else { return }
    state.withLock { state in
      var isIdle = true
      state.slab.forEach { _, node in
        let position = node.pointee.position
        if node.pointee.references > 0, position.throughout == nil || position == .nowhere { isIdle = false }
      }
      guard isIdle, let followed = scope.compactIfCrowded() else { return }
      state.slab.forEach { _, node in
        guard node.pointee.position.throughout == nil else { return }
        node.pointee.position = followed[node.pointee.position] ?? .nowhere
      }
    }
  }
}
