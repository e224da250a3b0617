// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Synchronization

extension View {
  /// What was granted is in other places now, and then some of it is said otherwise.
  ///
  /// What is open stays so, and is found by its new name: a place that is renamed keeps its position.
  func follow(_ moves: [ScopeMove], _ changes: [(old: ScopePlace, new: ScopePlace)] = []) {
    scope.change { scope in
      scope.follow(moves.map { (old: $0.old, new: $0.new) })
      for change in changes {
        scope.withdraw(change.old)
        scope.admit(change.new)
      }
    }
    settleScope()
    makeRoom()
  }

  /// Takes a place out of the view without waiting for what is under way.
  func drop(_ place: ScopePlace) {
    scope.change { $0.withdraw(place) }
    settleScope()
  }

  /// Gives back what the scope does not need any more, if it has come to much; not while anyone moves grants.
  func makeRoom() { nodes.renumber(scope) }
}

extension NodeTable {
  /// Gives nodes new positions where the scope numbers its places anew.
  ///
  /// Only while no request has a node whose position is a number: it could take that for what it meant
  /// before. Then another change of the scope will come.
  fileprivate func renumber(_ scope: ViewScope) {
    guard scope.ask({ $0.isCrowded }) else { return }
    state.withLock { state in
      var isQuiet = true
      state.slab.forEach { _, node in
        let position = node.pointee.position
        if node.pointee.pins > 0, position.throughout == nil || position == .nowhere { isQuiet = false }
      }
      guard isQuiet, let followed = scope.compactIfCrowded() else { return }
      state.slab.forEach { _, node in
        guard node.pointee.position.throughout == nil else { return }
        node.pointee.position = followed[node.pointee.position] ?? .nowhere
      }
    }
  }
}
