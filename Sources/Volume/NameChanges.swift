// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Synchronization

/// Tells whether any name of the tree has been taken from an object, and so may stand for another, while someone looked.
final class NameChanges: Sendable {
  private let begun = Atomic<UInt64>(0)
  private let ended = Atomic<UInt64>(0)

  /// Removes or moves a name.
  func change(_ body: () throws(Errno) -> Void) throws(Errno) {
    begun.wrappingAdd(1, ordering: .sequentiallyConsistent)
    defer { ended.wrappingAdd(1, ordering: .sequentiallyConsistent) }
    try body()
  }

  /// How many changes there have been; nil while one is going on.
  var settled: UInt64? {
    // In this order: as many as had ended had begun, so none was under way when the second was read.
    let count = ended.load(ordering: .sequentiallyConsistent)
    return begun.load(ordering: .sequentiallyConsistent) == count ? count : nil
  }

  /// Whether none has begun since there were so many.
  func isUnchanged(since count: UInt64) -> Bool { begun.load(ordering: .sequentiallyConsistent) == count }
}
