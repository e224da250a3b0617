// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Backs off from caching names in directories whose names had to be withdrawn by
/// `Connection.entriesChanged`, which makes the kernel look up all names of the view again.
///
/// Names in such a directory are not cached for a minute, so nothing needs to be withdrawn there meanwhile.
/// An app that saves a document in a granted folder causes that in the view of the whole tree, so it concerns
/// the one directory. But whoever closes and opens directories again and again, or changes them through two
/// views at once, makes everyone's names be looked up again each time, and could do so in any number of
/// directories. So an owner whose directories cause it several times within a minute has none cached for a
/// minute, except root. Then nothing of theirs needs to be withdrawn.
final class NameCacheBackoff: Sendable {
  fileprivate struct Owner {
    /// Since when withdrawals are counted.
    var since: UInt32
    var count = 0
    var until: UInt32 = 0
  }
  fileprivate struct State {
    /// When the pause of a directory ends.
    var directories: [ObjectNumber: UInt32] = [:]
    var owners: [UInt32: Owner] = [:]
  }
  /// How many withdrawals within a pause's length lead to a pause for all directories of an owner.
  static let tolerated = 5
  static let maxEntries = 4096

  /// The length of a pause.
  private let seconds: UInt32
  private let state = OrderedMutex(.leaf, State())
  /// When the last of them ends; 0 if there was none yet.
  private let lastEnd = Atomic<UInt32>(0)

  /// With 0 seconds there is no backoff.
  init(seconds: UInt32) { self.seconds = seconds }

  /// Whether names in a directory must not be cached now.
  ///
  /// The owner is nil where owners make no difference.
  func covers(_ directory: ObjectNumber, owner: UInt32?, at now: UInt32 = coarseSeconds()) -> Bool {
    guard now < lastEnd.load(ordering: .relaxed) else { return false }
    return state.withLock { state in
      if let end = state.directories[directory], now < end { return true }
      if let owner, let found = state.owners[owner], now < found.until { return true }
      return false
    }
  }

  /// Names of this directory have been withdrawn at everyone's expense.
  func add(_ directory: ObjectNumber, owner: UInt32?, at now: UInt32 = coarseSeconds()) {
    guard seconds > 0 else { return }
    let end = now &+ seconds
    state.withLock { state in
      // Names that were cached before a pause began may still have to be withdrawn.
      if state.directories[directory].map({ now < $0 }) != true {
        state.makeRoom(at: now)
        if state.directories.count < Self.maxEntries { state.directories[directory] = end }
      }
      if let owner, owner != 0 { state.note(owner, now, seconds) }
    }
    lastEnd.max(end, ordering: .relaxed)
  }

  /// How many directories, and owners with all of theirs, have no names cached now.
  func counts(at now: UInt32 = coarseSeconds()) -> (directories: Int, owners: Int) {
    guard now < lastEnd.load(ordering: .relaxed) else { return (0, 0) }
    return state.withLock { state in
      (state.directories.count { now < $0.value }, state.owners.count { now < $0.value.until })
    }
  }
}

extension NameCacheBackoff.State {
  /// Counts a withdrawal for the sake of an owner's directory.
  fileprivate mutating func note(_ owner: UInt32, _ now: UInt32, _ seconds: UInt32) {
    var noted = owners[owner] ?? NameCacheBackoff.Owner(since: now)
    guard now >= noted.until else { return }
    if now - min(now, noted.since) >= seconds { noted = NameCacheBackoff.Owner(since: now) }
    noted.count += 1
    // Nobody gets around this by having more directories than are remembered.
    if noted.count >= NameCacheBackoff.tolerated || directories.count >= NameCacheBackoff.maxEntries {
      noted = NameCacheBackoff.Owner(since: now, until: now &+ seconds)
    }
    owners[owner] = noted
  }

  /// Forgets what is over.
  fileprivate mutating func makeRoom(at now: UInt32) {
    if directories.count >= NameCacheBackoff.maxEntries {
      directories = directories.filter { now < $0.value }
    }
    if owners.count >= NameCacheBackoff.maxEntries { owners = owners.filter { now < $0.value.until } }
  }
}
