// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The flags of 4.4BSD and macOS, by their numbers there.
package struct FileFlags: OptionSet, Hashable, Sendable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  // The owner's.
  package static let noDump = FileFlags(rawValue: 0x1)
  package static let userImmutable = FileFlags(rawValue: 0x2)
  package static let userAppend = FileFlags(rawValue: 0x4)
  package static let opaque = FileFlags(rawValue: 0x8)
  package static let hidden = FileFlags(rawValue: 0x8000)

  // Root's.
  package static let archived = FileFlags(rawValue: 0x1_0000)
  package static let systemImmutable = FileFlags(rawValue: 0x2_0000)
  package static let systemAppend = FileFlags(rawValue: 0x4_0000)
  package static let noUnlink = FileFlags(rawValue: 0x10_0000)

  /// The protocol's own goes through two witnesses when another module calls it.
  package func isDisjoint(with other: FileFlags) -> Bool { rawValue & other.rawValue == 0 }

  package static let immutable: FileFlags = [.userImmutable, .systemImmutable]
  package static let appendOnly: FileFlags = [.userAppend, .systemAppend]

  /// What the owner may change.
  package static let ownerSettable: FileFlags = [.noDump, .userImmutable, .userAppend, .opaque, .hidden]
  /// What root may change besides.
  package static let rootSettable: FileFlags = [.archived, .systemImmutable, .systemAppend, .noUnlink]
}
