// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// How much has been made in a tree since somebody began to go through it.
///
/// Whoever has a directory of it open can make things there as fast as somebody comes to them. So that going
/// through the tree has an end, it ends with ENOTEMPTY when too much of that has been counted.
package struct TreeGrowth {
  /// Far more than programs make that are about to end.
  package static let tolerated = 1000

  private let began = TreeGrowth.now
  private var late = 0

  package init() {}

  /// Counts an object if it was made since; if no time of birth is kept, if it was changed since.
  package mutating func count(_ object: FD) throws(Errno) {
    let changed = try object.status().st_ctim
    let born = (try object.creationTime() ?? changed).nanoseconds
    // What is from the future was made by another clock, or before this one was set back.
    if began < born, born <= Self.now { try add(1) }
  }

  mutating func add(_ count: Int) throws(Errno) {
    late += count
    guard late <= Self.tolerated else { throw .ENOTEMPTY }
  }

  private static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time.nanoseconds
  }
}
