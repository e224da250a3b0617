// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// How many names are noted in directories, to be read without a lock.
///
/// Several directories share a count, so one that isn't 0 says only that there may be some.
final class DirectoryCounts: @unchecked Sendable {
  // Unchecked: the memory is made before anyone can read it, and holds atomics.
  private static let size = 1 << 14
  private let counts = UnsafeMutablePointer<Atomic<UInt32>>.allocate(capacity: size)

  init() { for index in 0..<Self.size { (counts + index).initialize(to: Atomic(0)) } }

  deinit {
    counts.deinitialize(count: Self.size)
    counts.deallocate()
  }

  /// How many names are noted in a directory, at most.
  func count(in directory: ObjectNumber) -> UInt32 {
    counts[index(of: directory)].load(ordering: .sequentiallyConsistent)
  }

  func add(_ directory: ObjectNumber) {
    counts[index(of: directory)].wrappingAdd(1, ordering: .sequentiallyConsistent)
  }

  func remove(_ directory: ObjectNumber) {
    counts[index(of: directory)].wrappingSubtract(1, ordering: .sequentiallyConsistent)
  }

  private func index(of directory: ObjectNumber) -> Int {
    Identity.hash(inode: directory.inode, device: directory.device) & (Self.size - 1)
  }
}
