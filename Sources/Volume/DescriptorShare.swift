// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// The descriptors that node tables may keep open for speed, in equal shares.
///
/// A thousand views are to cost no more than one. A table that has more than its share, from when there were
/// fewer, gets no more of them.
final class DescriptorShare: Sendable {
  private let all: Int
  private let tables = Atomic<Int>(0)

  init(_ all: Int) { self.all = all }

  func join() { tables.wrappingAdd(1, ordering: .relaxed) }

  func leave() { tables.wrappingSubtract(1, ordering: .relaxed) }

  /// One table's share.
  var each: Int { max(all / max(tables.load(ordering: .relaxed), 1), Self.least) }

  /// A request needs no more at once.
  private static let least = 4
}
