// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// The users of whom a process was ended since it held a lock of a backing file, and others waited for that.
///
/// The keeper notes them, in memory that it shares with its workers (`LockHolderSearch` in the daemon). For
/// an hour the kernel passes through nothing that these users read or write: without that no memory of theirs
/// is filled while such a lock is held.
package final class LockHolders: @unchecked Sendable {
  // Unchecked: all words are atomic.

  /// How long a user is noted.
  package static let seconds: UInt32 = 3600
  private static let count = 64
  static let size = (count + 1) * MemoryLayout<UInt64>.stride

  /// The first word is the time until which the last of them is noted.
  ///
  /// The others are a user, how often that one was noted (three stands for more), and such a time.
  private let words: UnsafeMutablePointer<Atomic<UInt64>>
  /// Keeps the memory.
  private let owner: AnyObject
  private let accounts: SubordinateUsers

  init(
    at place: UnsafeMutableRawPointer, of owner: AnyObject, _ accounts: SubordinateUsers = .ofThisMachine
  ) {
    words = place.assumingMemoryBound(to: Atomic<UInt64>.self)
    self.owner = owner
    self.accounts = accounts
  }

  /// Whether nothing of a user's is passed through now.
  @inline(__always)
  package func contains(_ user: UInt32) -> Bool {
    words[0].load(ordering: .relaxed) != 0 && isNoted(user, at: coarseSeconds())
  }

  func isNoted(_ user: UInt32, at now: UInt32) -> Bool {
    guard words[0].load(ordering: .relaxed) > UInt64(now) else { return false }
    let account = accounts.holder(of: user)
    return (1...Self.count).contains { index in
      let word = words[index].load(ordering: .relaxed)
      return word >> 32 == UInt64(account) && word & Self.timeBits > UInt64(now)
    }
  }

  /// More seconds than a machine runs.
  private static let timeBits: UInt64 = (1 << 30) - 1

  /// Notes a user, with all ids that the account has been given.
  ///
  /// One process at a time does that. The result is how often the user is noted now.
  package func add(_ user: UInt32) -> Int { add(user, at: coarseSeconds()) }

  func add(_ user: UInt32, at now: UInt32) -> Int {
    let isKnown = isNoted(user, at: now)
    let account = UInt64(accounts.holder(of: user))
    let until = UInt64(now) + UInt64(Self.seconds)
    // The place that this user has, or the one whose time is over first.
    var place = 1
    for index in 1...Self.count {
      let word = words[index].load(ordering: .relaxed)
      if word >> 32 == account {
        place = index
        break
      }
      if word & Self.timeBits < words[place].load(ordering: .relaxed) & Self.timeBits { place = index }
    }
    // One that an earlier version has noted has no number.
    let known = isKnown ? max(1, words[place].load(ordering: .relaxed) >> 30 & 3) : 0
    let times = min(3, known + 1)
    words[place].store(account << 32 | times << 30 | until, ordering: .relaxed)
    words[0].store(until, ordering: .relaxed)
    return Int(times)
  }
}

extension KeptState {
  /// Behind the header.
  private static let lockHoldersOffset = 2048

  package var lockHolders: LockHolders {
    LockHolders(at: UnsafeMutableRawPointer(header) + Self.lockHoldersOffset, of: self)
  }
}
