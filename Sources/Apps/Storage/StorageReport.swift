// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
package import Policy

/// What is asked about the room that apps take.
package struct StorageRequest: Codable, Equatable, Sendable {
  /// Of this app alone.
  package var app: AppIdentifier?
  /// Of this user alone; nil for all.
  package var user: UInt32?

  package init(app: AppIdentifier? = nil, user: UInt32? = nil) {
    self.app = app
    self.user = user
  }
}

/// How much room apps take on the disk.
package struct StorageReport: Codable, Equatable, Sendable {
  /// What one app takes for one user.
  package struct Item: Codable, Equatable, Sendable {
    /// Of an app that is gone, or of a group or an iCloud container that no app has, that identifier.
    package let app: String
    package let name: String
    /// Nil for what all users share of an app.
    package let user: UInt32?
    package let isInstalled: Bool
    package internal(set) var isRunning = false
    /// When it was begun or ended last, in seconds since 1970; nil if that is not known.
    package internal(set) var lastRun: Int64?
    /// What it shares with others, groups and iCloud containers, is in the sizes of each.
    package internal(set) var sizes = StorageSizes()
    /// What a purge would free now, in bytes.
    package internal(set) var purgeable: Int64 = 0
    package internal(set) var advice: [StorageAdvice] = []
    /// When the oldest of the sizes was found, in seconds since 1970.
    package internal(set) var measured: Int64 = .max
    /// Whether all was counted.
    package internal(set) var isComplete = true

    init(app: String, name: String, user: UInt32?, isInstalled: Bool) {
      self.app = app
      self.name = name
      self.user = user
      self.isInstalled = isInstalled
    }
  }

  /// The largest first; as many as a reply has room for.
  package private(set) var items: [Item] = []
  /// How many there are besides, and what they take.
  package private(set) var others = 0
  package private(set) var othersBytes: Int64 = 0
  /// What all of them take; what several share is counted once.
  package let used: StorageSizes
  /// What a purge would free of all that the report is about.
  package let purgeable: Int64
  package let available: AvailableSpace

  /// In bytes of an answer, roughly.
  private static let room = 96 << 10

  init(_ items: [Item], used: StorageSizes, available: AvailableSpace) {
    self.used = used
    self.available = available
    purgeable = items.reduce(0) { $0.adding(clamped: $1.purgeable) }
    var left = Self.room
    let sorted = items.inOrder { one, other in
      let (first, second) = (one.sizes.total, other.sizes.total)
      return first == second ? (one.app, one.user ?? 0) < (other.app, other.user ?? 0) : first > second
    }
    for item in sorted {
      left -= item.length
      if left >= 0 {
        self.items.append(item)
      } else {
        others += 1
        othersBytes = othersBytes.adding(clamped: item.sizes.total)
      }
    }
  }
}

extension StorageReport.Item {
  /// How long it is in an answer, at most.
  fileprivate var length: Int {
    func length(_ text: String) -> Int {
      // A control character has six bytes there.
      text.utf8.reduce(0) { $0 + ($1 < 0x20 || $1 == 0x7f ? 6 : $1 == 0x22 || $1 == 0x5c ? 2 : 1) }
    }
    return 500 + length(app) + length(name)
      + advice.reduce(0) { $0 + 100 + $1.examples.reduce(0) { $0 + 4 + length($1) } }
  }
}
