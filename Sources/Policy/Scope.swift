// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// One part of the tree that a view has.
package struct ScopePlace: Hashable, Sendable {
  /// Names below the root of the tree.
  package let path: [[UInt8]]
  /// With ``Reach/revocable`` if it was granted by the user.
  package let reach: Reach
  /// Whether it is the place with all that is in it, or that one object alone.
  package let isSubtree: Bool

  package init(_ path: [[UInt8]], _ reach: Reach, isSubtree: Bool = true) {
    self.path = path
    self.reach = reach
    self.isSubtree = isSubtree
  }

  /// `path` is relative to the root of the tree.
  package init(_ path: String, _ reach: Reach, isSubtree: Bool = true) {
    self.init(path.utf8.split(separator: UInt8(ascii: "/")).map(Array.init), reach, isSubtree: isSubtree)
  }
}

/// What of the tree is in a view: places, and the directories that lead there.
///
/// It is a tree itself, of the names that lead to its places. Places stay known by their positions when they are taken out, since
/// nodes remember them: such a position is in no reach until the place is put in again.
package struct Scope: Sendable {
  /// What is said about a place, or about all that is in it.
  private struct Claim {
    var permanent: Reach = []
    var granted: Reach = []

    var reach: Reach {
      let all = permanent.union(granted)
      return granted.isSubset(of: permanent) ? all : all.union(.revocable)
    }

    mutating func add(_ reach: Reach) {
      if reach.contains(.revocable) {
        granted.formUnion(reach.subtracting(.revocable))
      } else {
        permanent.formUnion(reach)
      }
    }

    mutating func add(_ other: Claim) {
      permanent.formUnion(other.permanent)
      granted.formUnion(other.granted)
    }
  }

  private struct Place {
    let name: [UInt8]
    let parent: Int
    /// Of the object alone, and of what is in it.
    var own = Claim()
    var inside = Claim()
    /// Something below is in the view.
    var leads = false
    /// A file in here was granted for writing.
    var hasGrantedFile = false

    var reach: Reach {
      var claim = own
      claim.add(inside)
      var reach = claim.reach
      if leads { reach.insert(.read) }
      if hasGrantedFile, !reach.contains(.write) { reach.insert(.beside) }
      return reach
    }
  }

  /// A name in a place.
  private struct Child: Hashable {
    let parent: Int
    let name: [UInt8]
  }

  /// The first is the root; each comes after its parent.
  private var places = [Place(name: [], parent: 0)]
  private var children: [Child: Int] = [:]
  private var claims: [ScopePlace] = []
  /// Files that were put beside one that was granted.
  private var companions: Set<ScopePlace> = []

  package init(_ claims: [ScopePlace]) {
    self.claims = claims
    settle()
  }

  /// The whole tree.
  package static let wholeTree = Scope([ScopePlace([], .everything)])

  package var root: Position {
    // The whole tree has nothing to ask about.
    places.count == 1 && !claims.isEmpty
      && claims.allSatisfy { $0.isSubtree && !$0.reach.contains(.revocable) }
      ? Position(throughout: places[0].reach) : Position(place: 0)
  }

  /// Where a name in a place leads; ``Position/nowhere`` if it does not exist in the view.
  package func position(of name: some Collection<UInt8>, in position: Position) -> Position {
    guard let index = position.placeIndex, places.indices.contains(index) else { return position }
    if let child = child(name, of: index) {
      return places[child].reach.isEmpty ? .nowhere : Position(place: child)
    }
    return Position(throughout: places[index].inside.reach)
  }

  package func reach(of position: Position) -> Reach {
    if let reach = position.throughout { return reach }
    guard let index = position.placeIndex, places.indices.contains(index) else { return .nothing }
    return places[index].reach
  }

  /// Where something is in a place if the scope has nothing to say about it.
  package func inside(_ position: Position) -> Position {
    guard let index = position.placeIndex, places.indices.contains(index) else { return position }
    return Position(throughout: places[index].inside.reach)
  }

  private func child(_ name: some Collection<UInt8>, of index: Int) -> Int? {
    children[Child(parent: index, name: Array(name))]
  }
}

// MARK: - Changes

extension Scope {
  /// Puts a place in.
  package mutating func admit(_ place: ScopePlace) {
    guard !claims.contains(place) else { return }
    claims.append(place)
    settle()
  }

  /// Takes a place out; what other claims say about it stays.
  package mutating func withdraw(_ place: ScopePlace) { withdraw([place]) }

  package mutating func withdraw(_ places: Set<ScopePlace>) {
    claims.removeAll { places.contains($0) }
    settle()
  }

  /// A file that is being put beside one that was granted belongs to the view too, as long as that one does.
  package mutating func addCompanion(_ name: some Collection<UInt8>, in directory: Position) {
    guard let path = path(of: directory) else { return }
    companions.insert(Self.companion(path + [Array(name)]))
    settle()
  }

  /// The same for a file of that path.
  package mutating func addCompanion(at path: [[UInt8]]) {
    guard !path.isEmpty else { return }
    companions.insert(Self.companion(path))
    settle()
  }

  /// It has gone, or was renamed.
  package mutating func removeCompanion(_ name: some Collection<UInt8>, in directory: Position) {
    guard let path = path(of: directory),
      companions.remove(Self.companion(path + [Array(name)])) != nil
    else { return }
    settle()
  }

  /// What was granted is in other places now, since it was moved there with all that is in it: from the first path of each of
  /// `moves` to the second.
  ///
  /// Where what was in the old places is now, is what this returns.
  package mutating func follow(
    _ claims: [(old: ScopePlace, new: ScopePlace)], _ moves: [(old: [[UInt8]], new: [[UInt8]])]
  ) -> [Position: Position] {
    let alive = places.indices.filter { !places[$0].reach.isEmpty }
    let left = Set(claims.map(\.old))
    self.claims.removeAll { left.contains($0) }
    var known = Set(self.claims)
    for claim in claims where known.insert(claim.new).inserted { self.claims.append(claim.new) }
    companions = Set(
      companions.map { companion in
        let move = moves.first { companion.path.count > $0.old.count && companion.path.starts(with: $0.old) }
        return move.map { Self.companion($0.new + companion.path.dropFirst($0.old.count)) } ?? companion
      })
    settle()
    var followed: [Position: Position] = [:]
    for move in moves {
      guard let start = find(move.old[...]) else { continue }
      followed[Position(place: start)] = position(at: move.new)
      // Each comes after its parent.
      for index in alive where index > start {
        guard let parent = followed[Position(place: places[index].parent)], isBelow(start, index) else {
          continue
        }
        followed[Position(place: index)] = position(of: places[index].name, in: parent)
      }
    }
    return followed
  }

  private func isBelow(_ top: Int, _ index: Int) -> Bool {
    var ancestor = index
    while ancestor > top { ancestor = places[ancestor].parent }
    return ancestor == top
  }

  /// The position of a path that the scope has something to say about, or once had; nil for any other.
  package func place(at path: [[UInt8]]) -> Position? { find(path[...]).map { Position(place: $0) } }

  /// Where a path below the root of the tree leads.
  package func position(at path: [[UInt8]]) -> Position {
    path.reduce(root) { position(of: $1, in: $0) }
  }

  private static func companion(_ path: [[UInt8]]) -> ScopePlace {
    ScopePlace(path, [.read, .write, .revocable], isSubtree: false)
  }

  private func path(of position: Position) -> [[UInt8]]? {
    guard var index = position.placeIndex, places.indices.contains(index) else { return nil }
    var names: [[UInt8]] = []
    while index != 0 {
      names.append(places[index].name)
      index = places[index].parent
    }
    return names.reversed()
  }

  /// Works out from the claims what holds in each place.
  private mutating func settle() {
    for index in places.indices {
      places[index].own = Claim()
      places[index].inside = Claim()
      places[index].leads = false
      places[index].hasGrantedFile = false
    }
    for claim in claims { note(claim) }
    for companion in companions {
      guard let parent = companion.path.isEmpty ? nil : find(companion.path.dropLast()),
        places[parent].hasGrantedFile
      else { continue }
      note(companion)
    }
    for index in places.indices.dropFirst() {
      let around = places[places[index].parent].inside
      places[index].inside.add(around)
    }
  }

  private mutating func note(_ claim: ScopePlace) {
    guard let index = make(claim.path) else { return }
    if claim.isSubtree {
      places[index].inside.add(claim.reach)
    } else {
      places[index].own.add(claim.reach)
    }
    guard index != 0 else { return }
    let parent = places[index].parent
    if !claim.isSubtree, claim.reach.isSuperset(of: [.write, .revocable]) {
      places[parent].hasGrantedFile = true
    }
    var ancestor = parent
    while true {
      places[ancestor].leads = true
      if ancestor == 0 { return }
      ancestor = places[ancestor].parent
    }
  }

  private func find(_ path: ArraySlice<[UInt8]>) -> Int? {
    var index = 0
    for name in path {
      guard let child = child(name, of: index) else { return nil }
      index = child
    }
    return index
  }

  /// Finds or makes a place; nil if there are more than a scope can have.
  private mutating func make(_ path: [[UInt8]]) -> Int? {
    var index = 0
    for name in path {
      if let child = child(name, of: index) {
        index = child
        continue
      }
      guard places.count < Position.mostPlaces else { return nil }
      children[Child(parent: index, name: name)] = places.count
      places.append(Place(name: name, parent: index))
      index = places.count - 1
    }
    return index
  }
}
