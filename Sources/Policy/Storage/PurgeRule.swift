// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// When what apps can make again is thrown away by itself, and until how much is free.
package enum PurgeRule: Equatable, Sendable {
  case never
  /// When less is free than 5 percent of the disk and than 2 GiB, until there is twice as much.
  ///
  /// Five percent of a large disk is much, and no reason to take anything away from anybody.
  case usual
  case below(FreeSpaceGoal, until: FreeSpaceGoal)

  /// Reads what a mount option says: `5%:10%`, `2G:4G`.
  package init(_ text: String) throws(LimitRefusal) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2 else {
      throw LimitRefusal(reason: "it takes two goals, when to begin and when to end, as 5%:10% or 2G:4G")
    }
    let (start, end) = (try FreeSpaceGoal(parts[0]), try FreeSpaceGoal(parts[1]))
    switch (start, end) {
    case (.percent(let first), .percent(let last)) where first >= last,
      (.bytes(let first), .bytes(let last)) where first >= last:
      throw LimitRefusal(reason: "the second goal must be greater than the first")
    default: break
    }
    self = .below(start, until: end)
  }

  /// What is to become free on such a disk; nil where enough is.
  package func goal(on disk: DiskSpace) -> FreeSpaceGoal? {
    switch self {
    case .never: return nil
    case .usual:
      let start = min(disk.total / 20, 2 << 30)
      return disk.free < start ? .bytes(2 * start) : nil
    case .below(let start, let end):
      return start.missing(on: disk) > 0 && end.missing(on: disk) > 0 ? end : nil
    }
  }

  /// For how long an app must not have run whose temporary files are thrown away at any time, in seconds.
  package static let temporaryFilesLast: Int64 = 3 * 24 * 60 * 60
}
