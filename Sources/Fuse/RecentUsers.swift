// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// Detects a user who floods a session that others use as well.
///
/// The kernel hands requests over in order of arrival, so a neighbour waits for all those that came before.
/// Where a reply may be long or short, that user gets short ones.
struct RecentUsers: ~Copyable, Sendable {
  private let last = Atomic<UInt32>(.max)
  /// The last one with two requests in a row.
  private let pressing = Atomic<UInt32>(.max)
  private let left = Atomic<Int>(0)
  /// After so many requests of one user nobody else is there.
  private static let memory = 256

  /// A request has come.
  func note(_ user: UInt32) {
    if last.exchange(user, ordering: .relaxed) != user {
      left.store(Self.memory, ordering: .relaxed)
    } else {
      pressing.store(user, ordering: .relaxed)
      if left.load(ordering: .relaxed) > 0 { left.wrappingSubtract(1, ordering: .relaxed) }
    }
  }

  /// Whether a user presses while there are others.
  func isPressing(_ user: UInt32) -> Bool {
    left.load(ordering: .relaxed) > 0 && pressing.load(ordering: .relaxed) == user
  }

  func forget() { left.store(0, ordering: .relaxed) }
}
