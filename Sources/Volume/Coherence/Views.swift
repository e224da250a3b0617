// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// The views of a volume.
final class Views: Sendable {
  private struct State {
    /// Those that are told of what others change.
    ///
    /// They are kept here until they end: a weak reference to a view would make each use of it slower,
    /// wherever it is.
    var begun: [UInt32: View] = [:]
    var last: UInt32 = 0
    /// The number of the view that is asked itself what it knows, 0 if there is none; and the view once it
    /// has begun.
    var asked: (number: UInt32, view: View?) = (0, nil)
  }
  private let state = Mutex(State())
  private let count = Atomic<Int>(0)

  /// Whether there is more than one, so that what one changes others may have seen before.
  ///
  /// True before a second one can change anything.
  var areSeveral: Bool { count.load(ordering: .sequentiallyConsistent) > 1 }

  /// A number for a new view; and whether it is in ``KnownObjects``, as all are but the first.
  func number() -> (number: UInt32, isIndexed: Bool) {
    count.wrappingAdd(1, ordering: .sequentiallyConsistent)
    return state.withLock { state in
      state.last &+= 1
      if state.asked.number == 0 { state.asked.number = state.last }
      return (state.last, state.asked.number != state.last)
    }
  }

  /// From here on the view is told of what others change.
  func add(_ view: View) {
    state.withLock { state in
      state.begun[view.number] = view
      if state.asked.number == view.number { state.asked.view = view }
    }
  }

  /// The view's kernel asks no more.
  func remove(_ number: UInt32) {
    // Let go of after the lock: its end comes here too.
    let removed = state.withLock { state in
      if state.asked.number == number { state.asked.view = nil }
      return state.begun.removeValue(forKey: number)
    }
    withExtendedLifetime(removed) {}
  }

  /// A view that had that number is no more.
  func ended(_ number: UInt32) {
    state.withLock { if $0.asked.number == number { $0.asked = (0, nil) } }
    count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
  }

  /// The views whose kernel has begun to ask.
  var all: [View] { state.withLock { Array($0.begun.values) } }

  /// The view of that number, if its kernel asks.
  subscript(number: UInt32) -> View? { state.withLock { $0.begun[number] } }

  /// The view that is in no index, if it is another one.
  func asked(besides excepted: UInt32) -> View? {
    state.withLock { $0.asked.number == excepted ? nil : $0.asked.view }
  }
}
