// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What someone may do to an object.
///
/// For directories each right has a second reading. The numbers are those of Apple's access control lists, so
/// a list that is kept with a file means the same on both systems.
package struct Rights: OptionSet, Hashable, Sendable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Read a file's data; list a directory.
  package static let read = Rights(rawValue: 1 << 1)
  /// Write a file's data; add a file to a directory.
  package static let write = Rights(rawValue: 1 << 2)
  /// Execute a file; walk through a directory.
  package static let execute = Rights(rawValue: 1 << 3)
  /// Remove or rename the object itself.
  package static let delete = Rights(rawValue: 1 << 4)
  /// Append to a file; add a directory to a directory.
  package static let append = Rights(rawValue: 1 << 5)
  /// Remove or rename what a directory holds.
  package static let deleteChild = Rights(rawValue: 1 << 6)
  package static let readAttributes = Rights(rawValue: 1 << 7)
  /// Set the times.
  package static let writeAttributes = Rights(rawValue: 1 << 8)
  package static let readExtended = Rights(rawValue: 1 << 9)
  package static let writeExtended = Rights(rawValue: 1 << 10)
  package static let readSecurity = Rights(rawValue: 1 << 11)
  /// Change the mode, the access control list or the flags.
  package static let writeSecurity = Rights(rawValue: 1 << 12)
  /// Change the owner.
  package static let takeOwnership = Rights(rawValue: 1 << 13)
  /// Known from Windows; kept in lists, and without any effect.
  package static let synchronize = Rights(rawValue: 1 << 20)

  /// The other readings.
  package static let list = read
  package static let addFile = write
  package static let search = execute
  package static let addSubdirectory = append

  /// The generic rights: in a list each stands for several others.
  package static let genericAll = Rights(rawValue: 1 << 21)
  package static let genericExecute = Rights(rawValue: 1 << 22)
  package static let genericWrite = Rights(rawValue: 1 << 23)
  package static let genericRead = Rights(rawValue: 1 << 24)

  /// Get one more name.
  ///
  /// Not part of any ACL: only read-only regions, location rules and flags forbid it.
  package static let link = Rights(rawValue: 1 << 25)

  package static let nothing: Rights = []

  /// The thirteen that a list can grant one by one.
  package static let all: Rights = Rights(rawValue: (1 << 14) - 2)

  /// All that may be in a list.
  package static let known: Rights = all.union([
    .synchronize, .genericAll, .genericExecute, .genericWrite, .genericRead,
  ])

  /// Rights to change something, which a read-only region refuses.
  package static let modifying: Rights = [
    .write, .delete, .append, .deleteChild, .writeAttributes, .writeExtended, .writeSecurity, .takeOwnership,
    .link,
  ]
}
