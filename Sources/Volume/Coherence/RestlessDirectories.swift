// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Directories in which names had to be withdrawn by a word to the kernel that costs everyone
/// (`Connection.entriesChanged`).
///
/// Names in them are not remembered for a while, so nothing needs to be withdrawn there meanwhile: who opens
/// and closes a directory again and again, or changes it through two views at once, slows down their own
/// walks and nobody else's. Since there is always another directory, the same goes for all directories of its
/// owner, unless that is root.
final class RestlessDirectories: Sendable {
  private enum Key: Hashable {
    case directory(ObjectNumber)
    case owner(UInt32)
  }
  private struct Rest {
    var until: UInt32
    var seconds: UInt32
  }
  private static let mostSeconds: UInt32 = 86_400
  private static let mostEntries = 4096

  /// How long the first rest is.
  private let firstSeconds: UInt32
  private let rests = Mutex<[Key: Rest]>([:])
  /// When the last of them ends; 0 if there was none yet.
  private let lastEnd = Atomic<UInt32>(0)

  /// With 0 seconds there are no rests.
  init(seconds: UInt32) { firstSeconds = seconds }

  /// Whether names in a directory are not to be remembered now; the owner is nil where owners make no
  /// difference.
  func has(_ directory: ObjectNumber, owner: UInt32?) -> Bool {
    let end = lastEnd.load(ordering: .relaxed)
    guard end != 0 else { return false }
    let now = coarseSeconds()
    guard now < end else { return false }
    return rests.withLock { rests in
      if let rest = rests[.directory(directory)], now < rest.until { return true }
      if let owner, let rest = rests[.owner(owner)], now < rest.until { return true }
      return false
    }
  }

  /// Names of this directory have been withdrawn at everyone's expense.
  func add(_ directory: ObjectNumber, owner: UInt32?) {
    guard firstSeconds > 0 else { return }
    let now = coarseSeconds()
    let end = rests.withLock { rests in
      if rests.count >= Self.mostEntries { rests = rests.filter { now < $0.value.until } }
      var end = rest(&rests, .directory(directory), now)
      if let owner, owner != 0 { end = max(end, rest(&rests, .owner(owner), now)) }
      return end
    }
    lastEnd.max(end, ordering: .relaxed)
  }

  /// The first rest is short; one that follows within a day is four times as long as the one before.
  private func rest(_ rests: inout [Key: Rest], _ key: Key, _ now: UInt32) -> UInt32 {
    var seconds = firstSeconds
    if let last = rests[key] {
      // What was remembered before the rest began may still have to be withdrawn.
      if now < last.until { return last.until }
      if now - last.until < Self.mostSeconds { seconds = min(4 * last.seconds, Self.mostSeconds) }
    }
    rests[key] = Rest(until: now &+ seconds, seconds: seconds)
    return now &+ seconds
  }
}
