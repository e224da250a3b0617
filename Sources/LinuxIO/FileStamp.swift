// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Glibc

/// What changes with a file's bytes, whoever changes them.
package struct FileStamp: Hashable, Sendable {
  private let changed: Int64
  private let modified: Int64
  package let size: Int64

  package init(_ status: FileStatus) {
    changed = status.st_ctim.nanoseconds
    modified = status.modifiedNanoseconds
    size = Int64(status.st_size)
  }

  /// Whether a change from now on would get another time stamp.
  ///
  /// File times have the granularity of the backing filesystem, so a file that has just changed may change
  /// again within the same time stamp.
  package var isSettled: Bool {
    var now = FileTime()
    clock_gettime(CLOCK_REALTIME, &now)
    return now.nanoseconds &- changed > 1_000_000_000
  }
}

extension FileTime {
  /// Since the beginning of its clock.
  var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}
