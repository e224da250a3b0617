// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// The views of a volume.
final class Views: Sendable {
  private struct WeakView: Sendable {
    weak let view: View?
  }
  private struct State {
    var begun: [UInt32: WeakView] = [:]
    var last: UInt32 = 0
    /// The view that is asked itself what it knows; 0 if there is none.
    var asked: UInt32 = 0
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
      if state.asked == 0 { state.asked = state.last }
      return (state.last, state.asked != state.last)
    }
  }

  /// From here on the view is told of what others change.
  func add(_ view: View) { state.withLock { $0.begun[view.number] = WeakView(view: view) } }

  /// The view's kernel asks no more.
  func remove(_ number: UInt32) { state.withLock { $0.begun[number] = nil } }

  /// A view that had that number is no more.
  func ended(_ number: UInt32) {
    state.withLock { state in
      state.begun[number] = nil
      if state.asked == number { state.asked = 0 }
    }
    count.wrappingSubtract(1, ordering: .sequentiallyConsistent)
  }

  /// The views whose kernel has begun to ask.
  var all: [View] { state.withLock { state in state.begun.values.compactMap(\.view) } }

  /// Those of these numbers; and the one that is in no index.
  func find(_ numbers: [UInt32], besides excepted: UInt32) -> [View] {
    state.withLock { state in
      var found: [View] = []
      if state.asked != excepted, let view = state.begun[state.asked]?.view { found.append(view) }
      for number in numbers where number != excepted && number != state.asked {
        if let view = state.begun[number]?.view, found.last !== view { found.append(view) }
      }
      return found
    }
  }

  /// The view that is in no index, if it is another one.
  func asked(besides excepted: UInt32) -> View? {
    state.withLock { $0.asked == excepted ? nil : $0.begun[$0.asked]?.view }
  }
}
