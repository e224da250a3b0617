// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Backs off from caching names in directories whose names had to be withdrawn by
/// `Connection.entriesChanged`, which makes the kernel look up all names of the view again.
///
/// Names in such a directory are not cached for a while, so nothing needs to be withdrawn there meanwhile. A
/// user who closes and opens a directory repeatedly, or changes it through two views at once, then slows down
/// only their own walks. As they could use many directories, this applies to all directories of the owner,
/// except root's.
final class NameCacheBackoff: Sendable {
  private enum Key: Hashable {
    case directory(ObjectNumber)
    case owner(UInt32)
  }
  private struct Pause {
    var until: UInt32
    var seconds: UInt32
  }
  private static let mostSeconds: UInt32 = 86_400
  private static let mostEntries = 4096

  /// The length of the first pause.
  private let firstSeconds: UInt32
  private let pauses = OrderedMutex<[Key: Pause]>(.leaf, [:])
  /// When the last of them ends; 0 if there was none yet.
  private let lastEnd = Atomic<UInt32>(0)

  /// With 0 seconds there is no backoff.
  init(seconds: UInt32) { firstSeconds = seconds }

  /// Whether names in a directory must not be cached now.
  ///
  /// The owner is nil where owners make no difference.
  func covers(_ directory: ObjectNumber, owner: UInt32?) -> Bool {
    let end = lastEnd.load(ordering: .relaxed)
    guard end != 0 else { return false }
    let now = coarseSeconds()
    guard now < end else { return false }
    return pauses.withLock { pauses in
      if let pause = pauses[.directory(directory)], now < pause.until { return true }
      if let owner, let pause = pauses[.owner(owner)], now < pause.until { return true }
      return false
    }
  }

  /// Names of this directory have been withdrawn at everyone's expense.
  func add(_ directory: ObjectNumber, owner: UInt32?) {
    guard firstSeconds > 0 else { return }
    let now = coarseSeconds()
    let end = pauses.withLock { pauses in
      if pauses.count >= Self.mostEntries { pauses = pauses.filter { now < $0.value.until } }
      var end = pause(&pauses, .directory(directory), now)
      if let owner, owner != 0 { end = max(end, pause(&pauses, .owner(owner), now)) }
      return end
    }
    lastEnd.max(end, ordering: .relaxed)
  }

  /// The first pause is short; one that follows within a day is four times as long as the previous one.
  private func pause(_ pauses: inout [Key: Pause], _ key: Key, _ now: UInt32) -> UInt32 {
    var seconds = firstSeconds
    if let last = pauses[key] {
      // Names that were cached before the pause began may still have to be withdrawn.
      if now < last.until { return last.until }
      if now - last.until < Self.mostSeconds { seconds = min(4 * last.seconds, Self.mostSeconds) }
    }
    pauses[key] = Pause(until: now &+ seconds, seconds: seconds)
    return now &+ seconds
  }
}
