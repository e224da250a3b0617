// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Changes of a scope. Each costs as much as the path is long and as there are places below it, however many
// others there are.

extension Scope {
  /// Puts a place in.
  package mutating func admit(_ place: ScopePlace) {
    put(place)
    dropSiblingsWithoutOwner()
  }

  /// Takes a place out; what other claims say about it stays.
  package mutating func withdraw(_ place: ScopePlace) { withdraw([place]) }

  package mutating func withdraw(_ places: Set<ScopePlace>) {
    for place in places { take(place) }
    dropSiblingsWithoutOwner()
  }

  /// What a move means for those who know positions.
  package struct Followed: Sendable {
    /// Whether what is said about anything below has changed, and not only where it is.
    package var isElsewhere = false
    /// The directories that lead, or led, to what was moved.
    package var passages: Set<Position> = []

    package init() {}
  }

  /// Follows what was granted, which was moved with everything in it: from the first path of each of
  /// `moves` to the second.
  ///
  /// What has moved keeps its positions. What was not granted stays with its path, also what its user
  /// has consented to.
  @discardableResult
  package mutating func follow(_ moves: [(old: [[UInt8]], new: [[UInt8]])]) -> Followed {
    var followed = Followed()
    let staying = moves.compactMap { find($0.old) }.flatMap { claims(of: $0, at: path(of: $0)) }
      .filter { $0.maker != .grant }
    followed.isElsewhere = !staying.isEmpty
    for place in staying { take(place) }
    var moved: [(index: Int, path: [[UInt8]])] = []
    for move in moves {
      guard let index = find(move.old), index != 0 else { continue }
      followed.passages.formUnion(passages(above: index))
      detach(index)
      moved.append((index, move.new))
    }
    for (index, path) in moved {
      let before = places[index]
      let isAlone = attach(index, at: path)
      let after = places[index]
      if !isAlone || before.around != after.around || before.source != after.source {
        followed.isElsewhere = true
      }
      followed.passages.formUnion(passages(above: index))
    }
    for place in staying { put(place) }
    dropSiblingsWithoutOwner()
    if isClosed { followed.isElsewhere = true }
    return followed
  }

  private func passages(above index: Int) -> Set<Position> {
    var passages: Set<Position> = []
    var ancestor = index
    while ancestor != 0 {
      ancestor = places[ancestor].parent
      passages.insert(Position(place: ancestor))
    }
    return passages
  }

  // MARK: Claims

  mutating func put(_ place: ScopePlace) {
    guard let index = make(place.path) else {
      // What can't be given is not given. What can't be kept apart closes the view.
      if !place.reach.isDisjoint(with: [.asks, .asksUnlessGranted, .apart, .absent]) { isClosed = true }
      return
    }
    let claim = Claim(reach: place.reach, isSubtree: place.isSubtree, maker: place.maker)
    guard !places[index].claims.contains(claim) else { return }
    change(index) { $0.append(claim) }
  }

  mutating func take(_ place: ScopePlace) {
    let claim = Claim(reach: place.reach, isSubtree: place.isSubtree, maker: place.maker)
    guard let index = find(place.path), places[index].claims.contains(claim) else { return }
    change(index) { $0.removeAll { $0 == claim } }
  }

  private mutating func change(_ index: Int, _ body: (inout [Claim]) -> Void) {
    workOut(index) { body(&$0.claims) }
    if hasPatterns { for named in namedPlaces(for: index) { takePatternClaims(named) } }
  }

  /// Has a place say what its user has consented to by patterns that stand for it, beside what is said of it
  /// by its name.
  private mutating func takePatternClaims(_ index: Int) {
    let claims = patternPlaces(of: index).flatMap { places[$0].claims }.filter { $0.maker == .consent }
    if places[index].patternClaims != claims { workOut(index) { $0.patternClaims = claims } }
  }

  /// Works out what a place says after a change of its claims.
  private mutating func workOut(_ index: Int, _ body: (inout Place) -> Void) {
    let before = places[index]
    body(&places[index])
    places[index].own = Statement()
    places[index].inside = Statement()
    for claim in places[index].claims + places[index].patternClaims {
      if claim.isSubtree { places[index].inside.add(claim.reach) } else { places[index].own.add(claim.reach) }
    }
    if places[index].isPrivate { privatePlaces.insert(index) } else { privatePlaces.remove(index) }
    guard index != 0 else { return spread(from: index) }
    let apart = (places[index].isApart ? 1 : 0) - (before.isApart ? 1 : 0)
    count(places[index].claims.count - before.claims.count, apart: apart, above: index)
    let files = (places[index].isGrantedFile ? 1 : 0) - (before.isGrantedFile ? 1 : 0)
    places[places[index].parent].grantedFiles += files
    if places[index].inside != before.inside || places[index].asks != before.asks || apart != 0 {
      spread(from: index)
    }
  }

  /// Notes for every directory above a place that there are so many claims more, and so many places that are
  /// apart.
  private mutating func count(_ difference: Int, apart: Int, above index: Int) {
    if difference == 0, apart == 0 { return }
    var ancestor = index
    while ancestor != 0 {
      ancestor = places[ancestor].parent
      let asked = places[ancestor].asks
      places[ancestor].below += difference
      places[ancestor].apartBelow += apart
      if places[ancestor].asks != asked { spread(from: ancestor) }
    }
  }

  /// Works out what is said about everything in a place and in those below it.
  private mutating func spread(from top: Int) {
    var waiting = [top]
    while let index = waiting.popLast() {
      let (old, oldSource) = (places[index].around, places[index].source)
      let parent = places[index].parent
      let isApart = index != 0 && places[index].isApart
      places[index].around =
        if index == 0 {
          places[index].inside
        } else if isApart {
          Statement(granted: places[index].inside.granted)
        } else {
          places[parent].around.union(places[index].inside)
        }
      let saysSomething = index == 0 || isApart || !places[index].inside.isEmpty
      places[index].source = saysSomething ? index : places[parent].source
      if saysSomething, places[index].around.reach.contains(.revocable), places[index].interior == 0 {
        places[index].interior = add(Place(parent: index)) ?? 0
      }
      guard index == top || places[index].around != old || places[index].source != oldSource else { continue }
      var child = places[index].firstChild
      while child != 0 {
        waiting.append(child)
        child = places[child].next
      }
    }
  }

  // MARK: Places

  /// Finds or makes a place; nil if there are more than a scope can have.
  mutating func make(_ path: some Collection<[UInt8]>) -> Int? {
    var index = 0
    for name in path {
      if let child = child(name, of: index) {
        index = child
        continue
      }
      guard let new = add(Place(name: name)) else { return nil }
      link(new, to: index)
      index = new
    }
    return index
  }

  private mutating func add(_ place: Place) -> Int? {
    guard places.count < Position.mostPlaces else { return nil }
    places.append(place)
    return places.count - 1
  }

  /// Puts a place, and what is below it, into another one under its name.
  private mutating func link(_ index: Int, to parent: Int) {
    children[Child(parent: parent, name: key(places[index].name, in: parent))] = index
    let next = places[parent].firstChild
    places[index].parent = parent
    if names.ignoresCase, places[parent].comparesBytes || isDisk(index) { compareBytes(in: index) }
    places[index].next = next
    places[index].previous = 0
    if ScopePlace.suffix(ofPattern: places[index].name) != nil {
      places[parent].hasPatterns = true
      hasPatterns = true
    }
    if next != 0 { places[next].previous = index }
    places[parent].firstChild = index
    if places[index].isGrantedFile { places[parent].grantedFiles += 1 }
    count(places[index].allClaims, apart: places[index].allApart, above: index)
    spread(from: index)
    if hasPatterns { for place in places(in: index) { takePatternClaims(place) } }
  }

  private func isDisk(_ index: Int) -> Bool {
    var (depth, above) = (1, places[index].parent)
    while above != 0, depth <= TreeNames.deepestDisk { (depth, above) = (depth + 1, places[above].parent) }
    return depth <= TreeNames.deepestDisk && names.isDisk(path(of: index))
  }

  /// A path is that of the root of a disk from now on: names below it are compared as the disk does.
  package mutating func compareBytes(below path: [[UInt8]]) {
    if names.ignoresCase, let index = find(path) { compareBytes(in: index) }
  }

  private mutating func compareBytes(in top: Int) {
    var waiting = [top]
    while let index = waiting.popLast() {
      if places[index].comparesBytes { continue }
      var child = places[index].firstChild
      while child != 0 {
        let name = places[child].name
        children[Child(parent: index, name: key(name, in: index))] = nil
        children[Child(parent: index, name: name)] = child
        waiting.append(child)
        child = places[child].next
      }
      places[index].comparesBytes = true
    }
  }

  /// Takes a place, and what is below it, out of the one that it is in.
  private mutating func detach(_ index: Int) {
    let place = places[index]
    count(-place.allClaims, apart: -place.allApart, above: index)
    if place.isGrantedFile { places[place.parent].grantedFiles -= 1 }
    let child = Child(parent: place.parent, name: key(place.name, in: place.parent))
    if children[child] == index { children[child] = nil }
    if place.next != 0 { places[place.next].previous = place.previous }
    if place.previous != 0 {
      places[place.previous].next = place.next
    } else {
      places[place.parent].firstChild = place.next
    }
  }

  /// Puts what was taken out where a path leads by now; false if something was there, or there is no room.
  private mutating func attach(_ index: Int, at path: [[UInt8]]) -> Bool {
    guard let name = path.last, let parent = make(path.dropLast()) else {
      bury(index)
      return false
    }
    // What had that place has lost its name. What is said about the place holds for what is there now.
    var inherited: [ScopePlace] = []
    let old = child(name, of: parent)
    if let old {
      inherited = claims(of: old, at: path)
      detach(old)
      bury(old)
    }
    places[index].name = name
    link(index, to: parent)
    for place in inherited { put(place) }
    return old == nil
  }

  /// Nothing is said any more about a place that is in no other, nor about those below it.
  private mutating func bury(_ top: Int) {
    var waiting = [top]
    while let index = waiting.popLast() {
      let place = places[index]
      privatePlaces.remove(index)
      places[index].claims = []
      places[index].patternClaims = []
      places[index].own = Statement()
      places[index].inside = Statement()
      places[index].around = Statement()
      places[index].below = 0
      places[index].apartBelow = 0
      places[index].grantedFiles = 0
      var child = place.firstChild
      while child != 0 {
        waiting.append(child)
        child = places[child].next
      }
    }
  }

  /// What is said about a place and those below it, with the paths that they have if it has this one.
  func claims(of top: Int, at path: [[UInt8]]) -> [ScopePlace] {
    var found: [ScopePlace] = []
    var waiting = [(top, path)]
    while let (index, path) = waiting.popLast() {
      found += places[index].claims.map {
        ScopePlace(path, $0.reach, isSubtree: $0.isSubtree, by: $0.maker)
      }
      var child = places[index].firstChild
      while child != 0 {
        waiting.append((child, path + [places[child].name]))
        child = places[child].next
      }
    }
    return found
  }
}

extension Scope.Place {
  /// The number of claims here and below.
  fileprivate var allClaims: Int { below + claims.count }

  /// The number of places here and below that are apart.
  fileprivate var allApart: Int { apartBelow + (isApart ? 1 : 0) }
}

// MARK: - Room

extension Scope {
  /// Whether it is worth while to look for places that are of no use any more.
  package var isCrowded: Bool { places.count > crowd }

  /// Gives back the places that nothing is said about any more.
  ///
  /// All others get new positions, which is what this returns; what is in none of them is in the unnamed
  /// rest of what it was in.
  package mutating func compact() -> [Position: Position] {
    var smaller = Scope([], names: names)
    var new = [0: 0]
    var waiting = [0]
    while let index = waiting.popLast() {
      guard let parent = new[index] else { continue }
      for claim in places[index].claims {
        smaller.change(parent) { $0.append(claim) }
      }
      var child = places[index].firstChild
      while child != 0 {
        let place = places[child]
        if place.below > 0 || !place.claims.isEmpty, let made = smaller.add(Place(name: place.name)) {
          smaller.link(made, to: parent)
          // Two of its names may be one by now, where it is no disk's any more.
          smaller.places[made].comparesBytes = place.comparesBytes || smaller.places[made].comparesBytes
          new[child] = made
          waiting.append(child)
        }
        child = place.next
      }
    }
    var followed: [Position: Position] = [:]
    for index in places.indices {
      if let kept = new[index] {
        followed[Position(place: index)] = Position(place: kept)
      } else if !reach(of: Position(place: index)).isEmpty {
        var above = places[index].parent
        while above != 0, new[above] == nil { above = places[above].parent }
        if let kept = new[above] { followed[Position(place: index)] = smaller.unnamed(in: kept) }
      }
    }
    smaller.isClosed = isClosed
    smaller.siblings = siblings.compactMapValues { $0.moved(new) }
    smaller.crowd = max(4096, 2 * smaller.places.count)
    self = smaller
    return followed
  }
}
