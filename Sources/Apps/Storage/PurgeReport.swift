// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Policy
package import Store

/// What was thrown away, or would be.
package struct PurgeReport: Codable, Equatable, Sendable {
  /// What came of one directory.
  package struct Item: Codable, Equatable, Sendable {
    package let app: AppIdentifier
    package let user: UInt32
    package let place: PurgePlace
    /// When the app was begun or ended last, in seconds since 1970; nil if that is not known.
    package let lastRun: Int64?
    package fileprivate(set) var freed = FreedSpace()
    /// What stays, and why.
    package fileprivate(set) var left: [LeftBehind] = []
    /// Why nothing was thrown away, as the end of a sentence.
    package fileprivate(set) var refusal: String?

    init(_ candidate: PurgeCandidate, _ purge: Containers.Purge) {
      self.init(candidate, purge.freed, purge.left)
    }

    init(_ candidate: PurgeCandidate, refusal: String) {
      self.init(candidate, FreedSpace(), [])
      self.refusal = refusal
    }

    init(_ candidate: PurgeCandidate, _ freed: FreedSpace, _ left: [LeftBehind] = []) {
      app = candidate.app
      user = candidate.user
      place = candidate.place
      lastRun = candidate.lastRun
      self.freed = freed
      self.left = left
    }
  }

  /// In the order in which they went, without those in which nothing was; the first ``most`` of them.
  package private(set) var items: [Item] = []
  /// Of all of them, and of removed containers.
  package private(set) var freed = FreedSpace()
  /// Of removed containers alone; nil where they were not asked for.
  package let removed: FreedSpace?
  /// The store's disk afterwards.
  package let disk: DiskSpace
  /// What the goal still lacks, in bytes; nil where there was none.
  package let missing: Int64?
  package let isDryRun: Bool

  /// As many as a reply has room for.
  static let most = 500

  init(
    _ items: [Item], removed: FreedSpace? = nil, _ disk: DiskSpace, missing: Int64?, isDryRun: Bool
  ) {
    self.disk = disk
    self.removed = removed
    if let removed { freed.add(removed) }
    self.missing = missing
    self.isDryRun = isDryRun
    for item in items where item.freed.count > 0 || item.refusal != nil || !item.left.isEmpty {
      freed.add(item.freed)
      var shown = item
      shown.left = Array(item.left.prefix(20))
      if self.items.count < Self.most { self.items.append(shown) }
    }
  }
}
