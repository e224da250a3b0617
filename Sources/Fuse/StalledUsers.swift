// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

// Users whose requests wait in the kernel.
//
//  1. A request may wait for what its user holds: write(2) keeps the lock of a file for as long as it waits
//     for the memory that it reads from, which may be a file of a filesystem of the user's own that never
//     answers. Neither a signal nor a timeout ends the wait of a thread of ours for that lock.
//  2. The monitor sees threads that don't get on with what they serve (``StallWatch``). Their places are
//     taken by new ones, and they end when they come back.
//  3. All other requests of that user are served by threads of the user's own from then on (`RequestQueue`),
//     until a minute after the last has come back. So one user has only so many threads wait.

/// See the rules above.
final class StalledUsers: Sendable {
  private struct User {
    let queue: RequestQueue
    var until: UInt64
    /// How many threads have not come back.
    var lost = 0
  }
  private let users = Mutex<[UInt32: User]>([:])
  private let some = Atomic<Bool>(false)
  private let budget: Budget
  private let tell: @Sendable (_ user: UInt32) -> Void

  /// After which nobody counts on a thread any more that does not get on; those that wait for disks have
  /// longer.
  static let nanoseconds: UInt64 = 1_000_000_000
  static let slowNanoseconds: UInt64 = 4_000_000_000
  private static let nanosecondsApart: UInt64 = 60_000_000_000

  /// `tell` is called when a user is served apart.
  init(_ budget: Budget, tell: @escaping @Sendable (_ user: UInt32) -> Void) {
    self.budget = budget
    self.tell = tell
  }

  /// Whether there are any; costs a load.
  @inline(__always)
  var areThere: Bool { some.load(ordering: .relaxed) }

  /// By which a user is served; nil if that user is served as others are.
  func queue(of user: UInt32) -> RequestQueue? { users.withLock { $0[user]?.queue } }

  /// A thread is given up since a user's request waits; the thread calls what this gives when it comes back.
  func lose(_ user: UInt32) -> @Sendable () -> Void {
    add(user, lost: 1)
    return { self.cameBack(user) }
  }

  /// A user's requests wait, and so many threads have been given up for that.
  func add(_ user: UInt32, lost: Int = 0) {
    let isNew = users.withLock { users in
      var known =
        users[user]
        ?? User(queue: RequestQueue(budget: budget, isForOne: true, isOfStalledUser: true), until: 0)
      let isNew = known.until == 0
      known.until = monotonicNanoseconds() &+ Self.nanosecondsApart
      known.lost += lost
      users[user] = known
      return isNew
    }
    some.store(true, ordering: .relaxed)
    if isNew { tell(user) }
  }

  private func cameBack(_ user: UInt32) {
    users.withLock { users in
      users[user]?.lost -= 1
      users[user]?.until = monotonicNanoseconds() &+ Self.nanosecondsApart
    }
  }

  /// Has those served as others are who have had nothing waiting for long.
  func removeOld() {
    let now = monotonicNanoseconds()
    users.withLock { users in
      for (user, known) in users where known.lost == 0 && known.until < now && known.queue.count == 0 {
        known.queue.stop()
        users[user] = nil
      }
      some.store(!users.isEmpty, ordering: .relaxed)
    }
  }
}
