// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// The views of a volume.
final class Views: Sendable {
  private struct State {
    /// The views that are told of changes made through other views.
    var begun: [UInt32: PeerView] = [:]
    var last: UInt32 = 0
    /// The view that is not in the index, whose own node table is asked: its number, 0 if there is none, and
    /// the view once it has started.
    var unindexed: (number: UInt32, view: PeerView?) = (0, nil)
  }
  private let state = OrderedMutex(.leaf, State())
  private let count = Atomic<Int>(0)

  /// Whether there is more than one view, so that another view may have cached what one changes.
  ///
  /// True before a second one can change anything.
  var areSeveral: Bool { count.load(ordering: .sequentiallyConsistent) > 1 }

  /// A number for a new view; and whether it is in ``InterestIndex``, as all are but the first.
  ///
  /// `taken` is the number of a view that another worker has left.
  func number(_ taken: UInt32? = nil) -> (number: UInt32, isIndexed: Bool) {
    count.wrappingAdd(1, ordering: .sequentiallyConsistent)
    return state.withLock { state in
      state.last = max(state.last &+ (taken == nil ? 1 : 0), taken ?? 0)
      let number = taken ?? state.last
      if state.unindexed.number == 0 { state.unindexed.number = number }
      return (number, state.unindexed.number != number)
    }
  }

  /// From here on the view is told of what others change.
  func add(_ view: PeerView) {
    state.withLock { state in
      state.begun[view.number] = view
      if state.unindexed.number == view.number { state.unindexed.view = view }
    }
  }

  /// The view's kernel asks no more.
  func remove(_ number: UInt32) {
    // Let go of after the lock: its tables end with it.
    let removed = state.withLock { state in
      if state.unindexed.number == number { state.unindexed.view = nil }
      return state.begun.removeValue(forKey: number)
    }
    withExtendedLifetime(removed) {}
  }

  /// A view that had that number is no more.
  func ended(_ number: UInt32) {
    state.withLock { if $0.unindexed.number == number { $0.unindexed = (0, nil) } }
    count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
  }

  /// The views whose kernel has begun to ask.
  var all: [PeerView] { state.withLock { Array($0.begun.values) } }

  /// The view of that number, if its kernel asks.
  subscript(number: UInt32) -> PeerView? { state.withLock { $0.begun[number] } }

  /// The view that is in no index, if it is another one.
  func unindexed(besides excepted: UInt32) -> PeerView? {
    state.withLock { $0.unindexed.number == excepted ? nil : $0.unindexed.view }
  }
}
