// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What becomes free when things are removed.
package struct FreedSpace: Codable, Equatable, Sendable {
  /// Files and everything else that has a name.
  package private(set) var count: Int64 = 0
  /// What they take on the disk.
  package private(set) var bytes: Int64 = 0

  package init() {}

  /// Counts one name; a file with others stays where it is.
  package mutating func add(_ status: FileStatus) {
    count = count.adding(clamped: 1)
    guard status.isDirectory || status.st_nlink == 1 else { return }
    let size = Int64(status.st_blocks).multipliedReportingOverflow(by: 512)
    bytes = bytes.adding(clamped: size.overflow ? .max : max(0, size.partialValue))
  }

  package mutating func add(_ other: FreedSpace) {
    count = count.adding(clamped: other.count)
    bytes = bytes.adding(clamped: other.bytes)
  }
}
