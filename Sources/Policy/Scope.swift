// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// One part of the tree that a view has.
package struct ScopePlace: Hashable, Sendable {
  /// By what an app has it.
  ///
  /// What one of them has said, no other takes back.
  package enum Maker: Sendable {
    /// It is the app's own, or its signature opens it.
    case launch
    /// Its user, or an administrator, has decided about a service.
    case consent
    /// Its user has granted it. It alone goes along when what it is for is renamed.
    case grant
  }

  /// Names below the root of the tree.
  package let path: [[UInt8]]
  /// With ``Reach/revocable`` if its user may take it back.
  package let reach: Reach
  /// Whether it is the place with all that is in it, or that one object alone.
  package let isSubtree: Bool
  package let maker: Maker

  /// Without a maker, what its user may take back is a grant.
  package init(_ path: [[UInt8]], _ reach: Reach, isSubtree: Bool = true, by maker: Maker? = nil) {
    self.path = path
    self.reach = reach
    self.isSubtree = isSubtree
    self.maker = maker ?? (reach.contains(.revocable) ? .grant : .launch)
  }

  /// `path` is relative to the root of the tree.
  package init(_ path: String, _ reach: Reach, isSubtree: Bool = true, by maker: Maker? = nil) {
    self.init(
      path.utf8.split(separator: UInt8(ascii: "/")).map(Array.init), reach, isSubtree: isSubtree, by: maker)
  }

  /// The path, for people.
  package var text: String { String(decoding: GrantPath.path(path), as: UTF8.self) }

  /// The name that stands for all that end in `suffix`, and for all names without one; nothing in a
  /// filesystem can have it.
  package static func pattern(_ suffix: String) -> [UInt8] { [0] + Array(suffix.utf8) }

  /// What all names end in that a pattern stands for; nil for the name of an object.
  package static func suffix(ofPattern name: [UInt8]) -> ArraySlice<UInt8>? {
    name.first == 0 ? name.dropFirst() : nil
  }

  /// Whether a place's name is that of an object, or a pattern for it; what is nothing but the suffix is
  /// something else.
  static func stands(_ place: [UInt8], for name: some Collection<UInt8>) -> Bool {
    guard let suffix = suffix(ofPattern: place) else { return place.elementsEqual(name) }
    return name.count > suffix.count && name.suffix(suffix.count).elementsEqual(suffix)
  }
}

/// What of the tree is in a view: places, and the directories that lead there.
///
/// It is a tree of names itself. Nodes remember places by their positions, so a place keeps its position
/// while it is known: when it is renamed, and also when it is taken out (it is in no reach then, until it
/// is put in again).
package struct Scope: Sendable {
  /// What is said about one object, or about everything in it.
  struct Statement: Equatable, Sendable {
    var permanent: Reach = []
    var granted: Reach = []

    var isEmpty: Bool { permanent.isEmpty && granted.isEmpty }

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

    func union(_ other: Statement) -> Statement {
      Statement(
        permanent: permanent.union(other.permanent), granted: granted.union(other.granted))
    }
  }

  /// What one ``ScopePlace`` says about a place.
  struct Claim: Equatable, Sendable {
    let reach: Reach
    let isSubtree: Bool
    let maker: ScopePlace.Maker

    /// Whether it says that a place takes its user's consent.
    var isPrivate: Bool { !isSubtree && !reach.isDisjoint(with: [.asks, .asksUnlessGranted]) }
  }

  struct Place: Sendable {
    /// Empty for the root, and for what stands for the unnamed rest of a place.
    var name: [UInt8] = []
    var parent = 0
    /// The first of the places in it, and its neighbours among those in its parent; 0 for none.
    var firstChild = 0
    var next = 0
    var previous = 0
    var claims: [Claim] = []
    /// Those of consent whose patterns stand for its name, or for the names of what it is in.
    var patternClaims: [Claim] = []
    /// What the claims say of the object alone, and of what is in it.
    var own = Statement()
    var inside = Statement()
    /// What is said about everything in it, here or above, and the nearest place that says something.
    var around = Statement()
    var source = 0
    /// The place that stands for everything in it that has no place of its own, if that was granted; else 0.
    var interior = 0
    /// The number of claims below.
    var below = 0
    /// The number of places below that are apart.
    var apartBelow = 0
    /// The number of files in it that were granted for writing.
    var grantedFiles = 0
    /// Whether a name in it is a pattern.
    var hasPatterns = false
    /// Whether each spelling of a name in it is a name of its own, though the tree ignores case.
    var comparesBytes = false

    var isGrantedFile: Bool { own.granted.contains(.write) }

    /// Whether neither it nor anything in it exists.
    var isAbsent: Bool { inside.permanent.contains(.absent) }

    /// Whether nothing that is said of what is around it holds for it.
    var isApart: Bool { !own.permanent.isDisjoint(with: [.apart, .asks, .asksUnlessGranted]) }

    /// Whether it is said to take its user's consent.
    var isPrivate: Bool { !own.permanent.isDisjoint(with: [.asks, .asksUnlessGranted]) }

    /// Whether it says nothing of what is in it before its user has consented, whatever is said of all that
    /// is around it.
    ///
    /// A user who grants the place itself has decided. Nothing else that is said of all of it counts.
    var asks: Bool {
      guard inside.granted.isEmpty else { return false }
      return own.permanent.contains(.asks) || own.permanent.contains(.asksUnlessGranted) && below == 0
    }

    var reach: Reach {
      if isAbsent { return .nothing }
      var reach = own.union(around).reach
      reach.subtract([.asks, .asksUnlessGranted, .apart])
      if asks { reach.insert(.asks) }
      if below > 0 { reach.insert(.read) }
      if grantedFiles > 0, !reach.contains(.write) { reach.insert(.beside) }
      if isApart || apartBelow > 0, reach.contains(.write) { reach.insert(.keepsItsPlace) }
      return reach
    }
  }

  /// A name in a place.
  struct Child: Hashable {
    let parent: Int
    let name: [UInt8]
  }

  /// The first is the root.
  var places = [Place()]
  var children: [Child: Int] = [:]
  /// Where a name stands for what it is in any spelling, children are known by what these have in common.
  let names: TreeNames
  /// Whether any name is, or was, a pattern.
  var hasPatterns = false
  /// Whether there was no room for a place that keeps something apart: then nothing is in reach any more.
  var isClosed = false
  /// The places that take their user's consent.
  var privatePlaces: Set<Int> = []
  var siblings: [SiblingObject.Number: Sibling] = [:]
  /// With so many places it is time to look for some that are of no use any more.
  var crowd = 4096

  package init(_ claims: [ScopePlace], names: TreeNames = .bytes) {
    self.names = names
    for claim in claims { put(claim) }
  }

  /// The same for a tree whose names are compared in that way.
  package func comparing(_ names: TreeNames) -> Scope { Scope(claims(of: 0, at: []), names: names) }

  /// The whole tree.
  package static let wholeTree = Scope([ScopePlace([], .everything)])

  package var root: Position {
    // The whole tree has nothing to ask about.
    let claims = places[0].claims
    let isWhole = !claims.isEmpty && claims.allSatisfy { $0.isSubtree && !$0.reach.contains(.revocable) }
    return places.count == 1 && isWhole ? Position(throughout: places[0].reach) : Position(place: 0)
  }

  /// Where a name in a place leads; ``Position/nowhere`` if it does not exist in the view.
  ///
  /// `object` is what has that name. Without it nothing is found that counts as the object that it is,
  /// whatever its name.
  package func position(
    of name: some Collection<UInt8>, in position: Position, object: SiblingObject? = nil
  ) -> Position {
    if isClosed { return .nowhere }
    guard let index = index(position) else { return position }
    if isInterior(index) { return reach(of: position).isEmpty ? .nowhere : position }
    if let child = child(name, of: index), says(child) { return found(child) }
    if let pattern = patterns(for: name, in: index).first(where: says) { return found(pattern) }
    if let object, isSibling(object, name, in: index) { return .sibling }
    return unnamed(in: index)
  }

  package func reach(of position: Position) -> Reach {
    if isClosed { return .nothing }
    if let reach = position.throughout { return reach }
    guard let index = index(position) else { return .nothing }
    return isInterior(index) ? places[places[index].parent].around.reach : places[index].reach
  }

  /// Whether a directory has things that are not in the view, beside those that are.
  package func hidesContents(of position: Position) -> Bool {
    guard let index = index(position), !isInterior(index) else { return false }
    return !places[index].around.reach.contains(.read)
  }

  /// Where something is in a place if the scope has nothing to say about its name.
  package func inside(_ position: Position) -> Position {
    if isClosed { return .nowhere }
    guard let index = index(position), !isInterior(index) else { return position }
    return unnamed(in: index)
  }

  /// Whether everything below a position has that position too.
  package func isUniform(_ position: Position) -> Bool {
    guard let index = index(position) else { return true }
    return isInterior(index)
  }

  /// What was granted together, by its own position: a folder with all that is in it, or the files in one
  /// directory.
  ///
  /// Nil for what was not granted.
  package func grant(around position: Position) -> Position? {
    guard let index = index(position) else { return nil }
    let place = isInterior(index) ? places[index].parent : index
    if places[place].around.reach.contains(.revocable) { return Position(place: places[place].source) }
    return places[place].reach.contains(.beside) ? Position(place: place) : nil
  }

  /// The position of a path that the scope has something to say about, or once had; nil for any other.
  package func place(at path: [[UInt8]]) -> Position? { find(path).map { Position(place: $0) } }

  /// Where a path below the root of the tree leads.
  package func position(at path: [[UInt8]]) -> Position {
    path.reduce(root) { position(of: $1, in: $0) }
  }

  /// Whether anything in it takes its user's consent.
  package var hasPrivatePlaces: Bool { !privatePlaces.isEmpty }

  /// The path of a place that takes its user's consent; nil for any other position.
  package func path(ofPrivate position: Position) -> [[UInt8]]? {
    guard let index = index(position), places[index].asks else { return nil }
    let isOwn = places[index].claims.contains(where: \.isPrivate)
    return path(of: isOwn ? index : patternPlaces(of: index).first { places[$0].isPrivate } ?? index)
  }

  /// All places that have a path of their own.
  package var namedPlaces: [(path: [[UInt8]], position: Position)] {
    places.indices.filter { $0 != 0 && !isInterior($0) }.map { (path(of: $0), Position(place: $0)) }
  }

  // MARK: By number

  func index(_ position: Position) -> Int? {
    guard let index = position.placeIndex, places.indices.contains(index) else { return nil }
    return index
  }

  /// The names of a place that has one, and of those that it is in.
  func path(of place: Int) -> [[UInt8]] {
    var names: [[UInt8]] = []
    var index = place
    while index != 0 {
      names.append(places[index].name)
      index = places[index].parent
    }
    return names.reversed()
  }

  func isInterior(_ index: Int) -> Bool { index != 0 && places[index].name.isEmpty }

  func unnamed(in index: Int) -> Position {
    let reach = places[index].around.reach
    guard reach.contains(.revocable) else { return Position(throughout: reach) }
    let interior = places[places[index].source].interior
    return interior == 0 ? .nowhere : Position(place: interior)
  }

  func child(_ name: some Collection<UInt8>, of index: Int) -> Int? {
    children[Child(parent: index, name: key(name, in: index))]
  }

  /// What is the same for all names that are one name in a place.
  func key(_ name: some Collection<UInt8>, in index: Int) -> [UInt8] {
    let name = Array(name)
    // A pattern begins with a zero, which no name has.
    return names.ignoresCase && !places[index].comparesBytes ? TreeNames.folded(name) : name
  }

  /// Whether there is something to be said of a place that is not said of all that is around it.
  private func says(_ index: Int) -> Bool {
    places[index].isAbsent || places[index].isApart || !places[index].reach.isEmpty
  }

  private func found(_ index: Int) -> Position {
    places[index].reach.isEmpty ? .nowhere : Position(place: index)
  }

  func find(_ path: some Collection<[UInt8]>) -> Int? {
    var index = 0
    for name in path {
      guard let child = child(name, of: index) else { return nil }
      index = child
    }
    return index
  }
}
