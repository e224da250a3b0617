// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Synchronization

/// The large files that are being read for their seals, without a worker: opens of a file wait for the one
/// reading of it.
///
/// It is done when it is the turn of any user who waits for it, so nobody waits for more than their own.
final class SealReading: Sendable {
  /// A node of a view.
  struct Key: Hashable {
    let view: UInt32
    let node: UInt64
  }
  private struct Reading {
    var isUnderWay = false
    var users: Set<UInt32> = []
    /// Who waits for it.
    var waiting: [@Sendable () -> Void] = []
  }
  private let readings = OrderedMutex<[Key: Reading]>(.leaf, [:])
  private let slow: SlowWork

  init(_ slow: SlowWork) { self.slow = slow }

  /// Does `work`, unless the same is under way; calls `then` when it is done.
  func read(
    _ key: Key, for user: UInt32, work: @escaping @Sendable () -> Void, then: @escaping @Sendable () -> Void
  ) {
    let isFirst = readings.withLock { readings in
      readings[key, default: Reading()].waiting.append(then)
      return readings[key]?.users.insert(user).inserted == true
    }
    guard isFirst else { return }
    slow.add(user, UInt64(key.view)) {
      guard self.begin(key) else { return }
      work()
      let done = self.readings.withLock { $0.removeValue(forKey: key) }
      for then in done?.waiting ?? [] { then() }
    }
  }

  /// False if another user's turn came first.
  private func begin(_ key: Key) -> Bool {
    readings.withLock { readings in
      guard let reading = readings[key], !reading.isUnderWay else { return false }
      readings[key]?.isUnderWay = true
      return true
    }
  }
}
