// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What is wrong with the way to a store: the files in it are bare, so whoever reaches them passes all ACLs,
/// flags and seals, and whoever can rename it can put another store in its place.
package enum StoreDoorProblem: Equatable, Sendable {
  /// Others can reach the files in it.
  case open
  /// Others can rename what is in a directory.
  case writable
  /// A directory belongs to another ordinary user.
  case foreign(UInt32)

  /// Whether others can put something in the store's place.
  package var letsOthersExchange: Bool { self != .open }
}

/// A directory on the way to a store, or the store itself.
package struct StoreDoor: Sendable {
  package let mode: UInt32
  package let uid: UInt32
  /// Whether nobody but its owner and root is in its group.
  package let hasPrivateGroup: Bool

  package init(mode: UInt32, uid: UInt32, hasPrivateGroup: Bool) {
    (self.mode, self.uid, self.hasPrivateGroup) = (mode, uid, hasPrivateGroup)
  }

  /// Tells what is wrong with the store's own directory, for `user`, who serves it.
  package func problemOfStore(for user: UInt32) -> StoreDoorProblem? {
    if uid != user { return .foreign(uid) }
    if mode & writers != 0 { return .writable }
    return mode & 0o077 != 0 ? .open : nil
  }

  /// Tells what is wrong with a directory above it.
  ///
  /// In a sticky directory nobody renames what is another's.
  package func problemAbove(for user: UInt32) -> StoreDoorProblem? {
    if uid != user, uid != 0 { return .foreign(uid) }
    return mode & writers != 0 && mode & 0o1000 == 0 ? .writable : nil
  }

  private var writers: UInt32 { hasPrivateGroup ? 0o002 : 0o022 }
}
