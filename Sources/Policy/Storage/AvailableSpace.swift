// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What is free on a disk, and what could be, in bytes: Apple's numbers of a volume's available capacity.
package struct AvailableSpace: Codable, Equatable, Sendable {
  package let total: Int64
  /// As `statfs(2)` says it.
  package let free: Int64
  /// What there is for something that a person wants: with what a purge would free.
  package let importantUsage: Int64
  /// What there is for something that may as well be left: without what is to stay free.
  package let opportunisticUsage: Int64

  /// What could be freed is told in such steps: an app must not learn what another one does.
  package static let grain: Int64 = 16 << 20

  /// `purgeable` is what apps have that don't run; nothing of it goes by itself if the rule says so.
  package init(_ disk: DiskSpace, purgeable: Int64, rule: PurgeRule) {
    total = max(0, disk.total)
    free = min(max(0, disk.free), total)
    let goes = rule == .never ? 0 : max(0, purgeable) / Self.grain * Self.grain
    importantUsage = free + min(goes, total - free)
    opportunisticUsage = max(0, importantUsage - rule.reserve(on: disk))
  }
}

extension PurgeRule {
  /// What is to stay free on such a disk.
  package func reserve(on disk: DiskSpace) -> Int64 {
    let total = max(0, disk.total)
    if case .below(_, let end) = self { return end.missing(on: DiskSpace(total: total, free: 0)) }
    return 2 * min(total / 20, 2 << 30)
  }
}
