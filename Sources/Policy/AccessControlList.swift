// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The state of an object's ACL.
package enum AccessControl: Equatable, Sendable {
  /// It has none; the mode decides.
  case none
  /// It has an ACL, which may be empty.
  case acl(AccessControlList)
  /// Its ACL can't be read any more.
  ///
  /// Everyone but root is refused everything until it is replaced or removed.
  case damaged
}

/// An access control list (ACL).
///
/// Its entries are evaluated in order.
package struct AccessControlList: Equatable, Sendable {
  /// Flags of the ACL as a whole.
  package struct Flags: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package static let deferInherit = Flags(rawValue: 1 << 16)
    /// An object that is created with this ACL inherits nothing.
    package static let noInherit = Flags(rawValue: 1 << 17)

    package static let known: Flags = [.deferInherit, .noInherit]
  }

  /// An ACL with more entries is refused, never truncated.
  package static let maximumCount = 128

  package var entries: [AccessControlEntry]
  package var flags: Flags

  package init(_ entries: [AccessControlEntry], flags: Flags = []) {
    self.entries = entries
    self.flags = flags
  }
}

/// One entry of an ACL.
package struct AccessControlEntry: Hashable, Sendable {
  /// What the entry does, by Apple's numbers.
  package enum Kind: UInt32, Sendable {
    case permit = 1
    case deny = 2
    /// Stored and ignored, as on macOS.
    case audit = 3
    case alarm = 4
  }

  /// Where the entry came from, and what inherits it.
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
    /// Does not apply to this directory, only to what is created in it.
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
