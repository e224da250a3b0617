// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Synchronization

/// How many grants lead through directories, to be read without a lock.
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

  /// How many grants lead through a directory, at most.
  func count(in directory: ObjectNumber) -> UInt32 {
    counts[index(of: directory)].load(ordering: .sequentiallyConsistent)
  }

  func change(_ directory: ObjectNumber, by difference: Int) {
    let difference = UInt32(truncatingIfNeeded: difference)
    counts[index(of: directory)].wrappingAdd(difference, ordering: .sequentiallyConsistent)
  }

  private func index(of directory: ObjectNumber) -> Int {
    Identity.hash(inode: directory.inode, device: directory.device) & (Self.size - 1)
  }
}
