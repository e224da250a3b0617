// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a view allows at a location, before ACLs and modes are evaluated.
///
/// A reach only restricts: everything in it is still judged by all rules of the whole tree.
package struct Reach: OptionSet, Hashable, Sendable {
  package let rawValue: UInt16
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Find it, read it, list it.
  package static let read = Reach(rawValue: 1 << 0)
  /// Change it, and what it holds.
  package static let write = Reach(rawValue: 1 << 1)
  /// Run it.
  package static let execute = Reach(rawValue: 1 << 2)
  /// Was granted by the user, who may take it back while it is in use.
  package static let revocable = Reach(rawValue: 1 << 3)
  /// A directory of which only a file was granted: files may be put beside that one, to be renamed over it.
  package static let beside = Reach(rawValue: 1 << 4)

  /// A directory that holds what is private: its name is there, and nothing else of it until its user has
  /// consented.
  package static let asks = Reach(rawValue: 1 << 5)

  /// The same, unless its user has granted something in it: programs save what they were granted by names
  /// beside it, and are to find those free.
  package static let asksUnlessGranted = Reach(rawValue: 1 << 6)

  /// It does not exist in the view, whatever is said of what is around it.
  package static let absent = Reach(rawValue: 1 << 7)

  /// Nothing that is said of what is around it holds for it or for what is in it.
  ///
  /// This is said of private places, whether or not their user has consented.
  package static let apart = Reach(rawValue: 1 << 8)

  /// It is apart, or leads to what is, so it is neither renamed nor removed.
  ///
  /// Under another name it would not be apart.
  package static let keepsItsPlace = Reach(rawValue: 1 << 9)

  /// It does not exist in the view.
  package static let nothing: Reach = []
  package static let everything: Reach = [.read, .write, .execute]

  /// Whether what is in it, or what may be done in it, was granted.
  package var isRevocable: Bool { !isDisjoint(with: [.revocable, .beside]) }
}

/// Where in a scope something is, in two bytes: most places are like all that is around them.
package struct Position: Hashable, Sendable {
  package let raw: UInt16

  /// A place in a part of the tree that is all in the same reach.
  package init(throughout reach: Reach) { raw = reach.rawValue & (Self.firstPlace - 1) }

  /// A place that the scope has something to say about.
  init(place index: Int) { raw = Self.firstPlace + UInt16(truncatingIfNeeded: index) }

  /// Numbers from here on are places, those before are reaches.
  private static let firstPlace: UInt16 = 16
  /// There can't be more places than this in a scope.
  static let mostPlaces = Int(UInt16.max - firstPlace)

  package static let whole = Position(throughout: .everything)
  package static let nowhere = Position(throughout: .nothing)
  /// What an app has made beside a file that it was granted, or has put aside of it.
  package static let sibling = Position(throughout: [.read, .write, .revocable])

  /// The reach of this place and of all that is below it; nil where the scope must be asked.
  package var throughout: Reach? {
    raw < Self.firstPlace ? Reach(rawValue: raw) : nil
  }

  var placeIndex: Int? { raw < Self.firstPlace ? nil : Int(raw - Self.firstPlace) }
}
