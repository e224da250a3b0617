// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What an object has in the way of an access control list.
package enum AccessControl: Equatable, Sendable {
  /// It has none; the mode decides.
  case none
  /// It has one, be it empty.
  case list(AccessControlList)
  /// It has had one that can't be read any more: nothing is allowed, save to root, until it is replaced or
  /// removed.
  case damaged
}

/// An access control list: its entries count in the order in which they stand.
package struct AccessControlList: Equatable, Sendable {
  /// What is said about the list as a whole.
  package struct Flags: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package static let deferInherit = Flags(rawValue: 1 << 16)
    /// Nothing is inherited where an object is made with this list.
    package static let noInherit = Flags(rawValue: 1 << 17)

    package static let known: Flags = [.deferInherit, .noInherit]
  }

  /// More entries than this are refused, never cut off.
  package static let maximumCount = 128

  package var entries: [AccessControlEntry]
  package var flags: Flags

  package init(_ entries: [AccessControlEntry], flags: Flags = []) {
    self.entries = entries
    self.flags = flags
  }
}

/// One line of an access control list.
package struct AccessControlEntry: Hashable, Sendable {
  /// What it does; the numbers are Apple's.
  package enum Kind: UInt32, Sendable {
    case permit = 1
    case deny = 2
    /// Kept and skipped, as on a Mac.
    case audit = 3
    case alarm = 4
  }

  /// Where it came from, and where it goes.
  package struct Inheritance: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    /// Came from the parent directory when the object was made.
    package static let inherited = Inheritance(rawValue: 1 << 4)
    /// Goes to files made in this directory.
    package static let fileInherit = Inheritance(rawValue: 1 << 5)
    /// Goes to directories made in this directory.
    package static let directoryInherit = Inheritance(rawValue: 1 << 6)
    /// Goes one level down and no further.
    package static let limitInherit = Inheritance(rawValue: 1 << 7)
    /// Says nothing about this directory, only about what is made in it.
    package static let onlyInherit = Inheritance(rawValue: 1 << 8)

    package static let controls: Inheritance = [.fileInherit, .directoryInherit, .limitInherit, .onlyInherit]

    package static let known: Inheritance = controls.union(.inherited)
  }

  package var kind: Kind
  package var principal: Principal
  package var rights: Rights
  package var inheritance: Inheritance

  package init(_ kind: Kind, _ principal: Principal, _ rights: Rights, _ inheritance: Inheritance = []) {
    self.kind = kind
    self.principal = principal
    self.rights = rights
    self.inheritance = inheritance
  }
}
