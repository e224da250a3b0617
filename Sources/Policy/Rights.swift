// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What someone may do to an object.
///
/// For directories each right has a second reading.
package struct Rights: OptionSet, Sendable {
  package let rawValue: UInt16
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Read a file's data; list a directory.
  package static let read = Rights(rawValue: 1 << 0)
  /// Write a file's data; add a file to a directory.
  package static let write = Rights(rawValue: 1 << 1)
  /// Execute a file; walk through a directory.
  package static let execute = Rights(rawValue: 1 << 2)
  /// Remove or rename the object itself.
  package static let delete = Rights(rawValue: 1 << 3)
  /// Append to a file; add a directory to a directory.
  package static let append = Rights(rawValue: 1 << 4)
  /// Remove or rename what a directory holds.
  package static let deleteChild = Rights(rawValue: 1 << 5)
  package static let readAttributes = Rights(rawValue: 1 << 6)
  /// Set the times.
  package static let writeAttributes = Rights(rawValue: 1 << 7)
  package static let readExtended = Rights(rawValue: 1 << 8)
  package static let writeExtended = Rights(rawValue: 1 << 9)
  package static let readSecurity = Rights(rawValue: 1 << 10)
  /// Change the mode.
  package static let writeSecurity = Rights(rawValue: 1 << 11)
  /// Change the owner or the group.
  package static let takeOwnership = Rights(rawValue: 1 << 12)

  package static let addFile = write
  package static let list = read
  package static let search = execute
  package static let addSubdirectory = append

  /// What changes something, and a sealed place refuses.
  package static let modifying: Rights = [
    .write, .delete, .append, .deleteChild, .writeAttributes, .writeExtended, .writeSecurity, .takeOwnership,
  ]
}

/// Who asks.
///
/// Supplementary groups are not part of it: they are asked for only when a decision depends on them.
package struct Subject: Sendable {
  package let uid: UInt32
  package let gid: UInt32

  package init(uid: UInt32, gid: UInt32) {
    self.uid = uid
    self.gid = gid
  }

  /// Passes modes, never the rules of a place.
  package var isSuperuser: Bool { uid == 0 }
}

/// The permission-bearing part of what is asked for.
package struct Object: Sendable {
  package let uid: UInt32
  package let gid: UInt32
  /// The twelve permission bits.
  package let mode: UInt32
  package let isDirectory: Bool
  package let zone: Zone

  package init(uid: UInt32, gid: UInt32, mode: UInt32, isDirectory: Bool, zone: Zone) {
    self.uid = uid
    self.gid = gid
    self.mode = mode
    self.isDirectory = isDirectory
    self.zone = zone
  }
}

/// Why something is refused.
///
/// One place maps these to errnos.
package enum Denial: Sendable {
  /// The place is sealed, as on a read-only volume.
  case sealed
  /// A rule of the place, which holds for root too.
  case place
  /// The mode bits.
  case mode
  /// Only the owner, or root, may do this.
  case ownership
}

/// The answer of the gate.
package enum Decision: Equatable, Sendable {
  case allow
  case deny(Denial)
}
