// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Has a look every second while apps run, so that what an administrator restricts acts on them too.
final class RestrictionWatch: Sendable {
  private struct State {
    var isRunning = false
    /// Whether an app has begun since the last look.
    var isNew = false
  }
  private let state = Condition(State())

  /// An app runs from here on: `look` is told so, and says whether one still does.
  func begin(_ look: @escaping @Sendable (_ isNew: Bool) -> Bool) {
    let isFirst = state.withLock { state in
      state.isNew = true
      defer { state.isRunning = true }
      return !state.isRunning
    }
    guard isFirst else { return }
    let thread = try? JoinableThread(name: "restrictions") { [self] in
      repeat {
        _ = state.wait(milliseconds: Self.intervalMilliseconds) { _ in false }
      } while goesOn(look)
    }
    if let thread { thread.detach() } else { state.withLock { $0.isRunning = false } }
  }

  private static let intervalMilliseconds = 1000

  private func goesOn(_ look: (_ isNew: Bool) -> Bool) -> Bool {
    let isNew = state.withLock { state in
      defer { state.isNew = false }
      return state.isNew
    }
    if look(isNew) { return true }
    return state.withLock { state in
      state.isRunning = state.isNew
      return state.isRunning
    }
  }
}
