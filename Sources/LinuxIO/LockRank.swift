// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux

/// The lock order: a thread that holds a lock takes only locks listed below it here, and none of the same
/// rank.
///
/// Requests hold the first five while they wait for a disk. All others are held for a few memory accesses.
package enum LockRank: UInt8, Sendable {
  /// The names in a directory, or in two (`NameLocks`).
  case names = 1
  /// Where grants lead, while names on the way to them change (`GrantMoves`).
  case grantMoves
  /// What is mounted in the tree.
  case mounts
  /// Which seal is whose, and what is in one, which is read under its lock.
  case readOnlyRegion, seal
  /// What is granted, by its names.
  case grants
  /// The table of locked objects; the locks of one; who waits for locks of files.
  case lockedObjects, objectLocks, lockWaits
  /// Which file the kernel reads and writes by itself; it is registered under this.
  case backings
  /// The nodes of a view, the view's scope, and what is noted about both for all views.
  case nodes, scope, siblings, interestIndex
  /// Nothing is taken inside these but a budget's.
  case leaf

  /// Stops a debug build if the thread holds a lock that has to come after this one.
  package func enter() {
    #if DEBUG
      let last = clx_last_lock()
      precondition(last < rawValue, "\(self) is locked while \(Self.name(last)) is held")
      clx_lock_enter(rawValue)
    #endif
  }

  /// Locks may be released in any order.
  package func leave() {
    #if DEBUG
      clx_lock_leave(rawValue)
    #endif
  }

  #if DEBUG
    private static func name(_ raw: UInt8) -> String { LockRank(rawValue: raw).map { "\($0)" } ?? "nothing" }
  #endif
}
