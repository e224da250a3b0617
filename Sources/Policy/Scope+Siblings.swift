// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Where only a file was granted, an editor still saves it as it always does: it writes another one beside
// it, and renames that over it. Such a sibling is in the view because it is the very object that was made
// through the view, or that was granted.
//
//  1. A sibling is an object with a name in a directory. Another object of that name is none, nor is it one
//     by another name.
//  2. It belongs to those granted files whose editors use its name. It goes with the last of them.
//  3. What was granted, and is kept under a sibling's name, belongs to that file alone.

/// What tells an object from every other, also from a later one that is given its number.
package struct SiblingObject: Hashable, Sendable {
  package struct Number: Hashable, Sendable {
    package let inode: UInt64
    package let device: UInt32

    package init(inode: UInt64, device: UInt32) {
      self.inode = inode
      self.device = device
    }
  }

  package let number: Number
  /// The filesystem's own permanent name for it, or the time at which it was made.
  ///
  /// Nil if it was not looked at.
  package let mark: [UInt64]?

  package init(_ number: Number, mark: [UInt64]?) {
    self.number = number
    self.mark = mark
  }

  fileprivate func isSame(as other: SiblingObject) -> Bool {
    guard let mark, let known = other.mark else { return number == other.number }
    return number == other.number && mark == known
  }
}

extension Scope {
  struct Sibling: Sendable {
    let object: SiblingObject
    /// The place that it is in.
    var directory: Int
    var names: Set<[UInt8]>
    /// The files to which it belongs.
    var owners: Set<Int>

    /// The same where places have got other numbers; nil if its own has none any more.
    func moved(_ new: [Int: Int]) -> Sibling? {
      guard let directory = new[directory] else { return nil }
      return Sibling(
        object: object, directory: directory, names: names, owners: Set(owners.compactMap { new[$0] }))
    }
  }

  /// One view has at most so many.
  package static let mostSiblings = 1024

  package var hasSiblings: Bool { !siblings.isEmpty }

  /// Whether one more sibling can be made.
  package var hasRoomForSibling: Bool { siblings.count < Self.mostSiblings }

  func isSibling(_ object: SiblingObject, _ name: some Collection<UInt8>, in directory: Int) -> Bool {
    guard let known = siblings[object.number], known.directory == directory else { return false }
    return known.object.isSame(as: object) && known.names.contains(Array(name))
  }

  /// Whether an object is a sibling in a directory, under whichever name.
  package func isSibling(_ object: SiblingObject, in directory: Position) -> Bool {
    guard let known = siblings[object.number], known.directory == index(directory) else { return false }
    return known.object.isSame(as: object)
  }

  /// The files that were granted for writing and that a name in their directory may be for: the one that
  /// has it, or those whose editors use it.
  package func owners(ofName name: some Collection<UInt8>, in directory: Position) -> Set<Position> {
    guard let index = index(directory), places[index].grantedFiles > 0 else { return [] }
    if let own = child(name, of: index), places[own].isGrantedFile { return [Position(place: own)] }
    let name = Array(name)
    var owners: Set<Position> = []
    var child = places[index].firstChild
    while child != 0 {
      if places[child].isGrantedFile, isSiblingName(name, of: places[child].name) {
        owners.insert(Position(place: child))
      }
      child = places[child].next
    }
    return owners
  }

  /// Whether a name has a place of its own in a directory, and that is in reach.
  package func hasPlace(_ name: some Collection<UInt8>, in directory: Position) -> Bool {
    guard let index = index(directory), let child = child(name, of: index) else { return false }
    return !places[child].reach.isEmpty
  }

  /// Whether a position is that of a file in a directory that was granted for writing.
  package func isGrantedFile(_ position: Position, in directory: Position) -> Bool {
    guard let index = index(position), let parent = self.index(directory) else { return false }
    return index != 0 && places[index].parent == parent && places[index].isGrantedFile
  }

  /// The files to which an object belongs that has a name in a directory: the one that it is, or whose
  /// sibling it is.
  package func owners(
    of object: SiblingObject, named name: some Collection<UInt8>, in directory: Position
  ) -> Set<Position> {
    guard let index = index(directory) else { return [] }
    if let own = child(name, of: index), places[own].isGrantedFile { return [Position(place: own)] }
    guard isSibling(object, name, in: index), let known = siblings[object.number] else { return [] }
    return Set(known.owners.map { Position(place: $0) })
  }

  /// The files to which a sibling belongs, and the directory that it is in; nil if it is none.
  package func sibling(_ object: SiblingObject) -> (directory: Position, owners: Set<Position>)? {
    guard let known = siblings[object.number], known.object.isSame(as: object) else { return nil }
    return (Position(place: known.directory), Set(known.owners.map { Position(place: $0) }))
  }

  /// An object has a name beside granted files, to which it belongs.
  package mutating func addSibling(
    _ object: SiblingObject, _ name: some Collection<UInt8>, in directory: Position, of owners: Set<Position>
  ) {
    guard let index = index(directory) else { return }
    let owners = Set(owners.compactMap { self.index($0) })
    // An older object of that number is no more.
    var sibling =
      siblings[object.number].flatMap {
        $0.directory == index && $0.object.isSame(as: object) ? $0 : nil
      } ?? Sibling(object: object, directory: index, names: [], owners: owners)
    sibling.names.insert(Array(name))
    sibling.owners.formIntersection(owners)
    siblings[object.number] = sibling
    dropSiblingsWithoutOwner()
  }

  /// An object has lost a name in a directory.
  package mutating func removeSibling(
    _ number: SiblingObject.Number, _ name: some Collection<UInt8>, in directory: Position
  ) {
    guard var sibling = siblings[number], sibling.directory == index(directory) else { return }
    sibling.names.remove(Array(name))
    siblings[number] = sibling.names.isEmpty ? nil : sibling
  }

  /// Whatever had a name in a directory has it no more.
  package mutating func removeSiblings(named name: some Collection<UInt8>, in directory: Position) {
    guard let index = index(directory) else { return }
    let name = Array(name)
    let found = siblings.filter { $0.value.directory == index && $0.value.names.contains(name) }
    for number in found.keys { removeSibling(number, name, in: directory) }
  }

  /// An object is none any more, whatever its names are.
  package mutating func removeSibling(_ number: SiblingObject.Number) { siblings[number] = nil }

  package var siblingNumbers: [SiblingObject.Number] { Array(siblings.keys) }

  mutating func dropSiblingsWithoutOwner() {
    guard !siblings.isEmpty else { return }
    for (number, sibling) in siblings {
      let owners = sibling.owners.filter { owner in
        places[owner].isGrantedFile && places[owner].parent == sibling.directory
      }
      if owners.isEmpty {
        siblings[number] = nil
      } else if owners.count < sibling.owners.count {
        siblings[number]?.owners = owners
      }
    }
  }
}
