// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Volume

/// The files views that are mounted, by the numbers of their views.
final class FilesViews: Sendable {
  struct Mounted: Sendable {
    let mount: FilesMount
    let view: View
    /// What it takes of its user's budget.
    let share: BudgetShare
    /// What the next worker is to know of it.
    let kept: SharedMemory?
  }

  private struct State {
    var views: [UInt32: Mounted] = [:]
    var isEnding = false
  }
  private let state = Condition(State())

  /// False if nothing begins any more.
  func add(_ mounted: Mounted) -> Bool {
    state.withLock { state in
      guard !state.isEnding else { return false }
      state.views[mounted.view.number] = mounted
      return true
    }
  }

  /// The view's connection has ended.
  func remove(_ view: UInt32) { state.change { $0.views[view] = nil } }

  func has(_ view: UInt32) -> Bool { state.withLock { $0.views[view] != nil } }

  var all: [Mounted] { state.withLock { $0.views.values.inOrder { $0.view.number < $1.view.number } } }

  /// Who uses one, where they see it as the daemon does.
  var users: [MountUser] {
    let devices = Set(all.map(\.mount.device))
    return devices.isEmpty ? [] : MountUsers.all(of: devices).users.filter(\.isInOurNamespace)
  }

  /// Nothing begins from here on, and what is mounted is taken away, since the store is unmounted.
  func endAll(by helper: MountHelper) {
    state.withLock { $0.isEnding = true }
    // Who has laid something over theirs that does not answer holds nobody for each of them.
    var unanswered: Set<UInt32> = []
    for mounted in all where !unanswered.contains(mounted.mount.user) {
      if !mounted.mount.remove(by: helper) { unanswered.insert(mounted.mount.user) }
    }
    _ = state.wait(milliseconds: 1000) { $0.views.isEmpty }
  }
}
