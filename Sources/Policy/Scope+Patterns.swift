// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// A pattern is the name of a place that stands for many names. Where one of these has a place of its own,
// since something in it was granted, what its user has consented to by the pattern holds for it all the same.
// What a launch says by a pattern does not.

extension Scope {
  /// The places in a place whose names stand for all names like this one.
  func patterns(for name: some Collection<UInt8>, in index: Int) -> [Int] {
    guard places[index].hasPatterns, name.first != 0 else { return [] }
    let name = key(name, in: index)
    return childPlaces(of: index).filter { child in
      let place = key(places[child].name, in: index)
      return place.first == 0 && ScopePlace.stands(place, for: name)
    }
  }

  /// The places that stand for a place by patterns, in its name or in those above it.
  func patternPlaces(of index: Int) -> [Int] {
    var here = 0
    var found: [Int] = []
    for name in path(of: index) {
      found =
        found.compactMap { child(name, of: $0) } + ([here] + found).flatMap { patterns(for: name, in: $0) }
      guard let next = child(name, of: here) else { return [] }
      here = next
    }
    return found
  }

  /// The places with names for which a place stands by patterns.
  func namedPlaces(for index: Int) -> [Int] {
    let names = path(of: index)
    guard names.contains(where: { ScopePlace.suffix(ofPattern: $0) != nil }) else { return [] }
    var found = [0]
    for name in names {
      found = found.flatMap { place in
        guard ScopePlace.suffix(ofPattern: name) != nil else {
          return child(name, of: place).map { [$0] } ?? []
        }
        let pattern = key(name, in: place)
        return childPlaces(of: place).filter { child in
          let other = key(places[child].name, in: place)
          return other == pattern || other.first != 0 && ScopePlace.stands(pattern, for: other)
        }
      }
    }
    return found.filter { $0 != index }
  }

  private func childPlaces(of index: Int) -> [Int] {
    var found: [Int] = []
    var child = places[index].firstChild
    while child != 0 {
      found.append(child)
      child = places[child].next
    }
    return found
  }

  /// A place and all that have a name below it.
  func places(in top: Int) -> [Int] {
    var found: [Int] = []
    var waiting = [top]
    while let index = waiting.popLast() {
      found.append(index)
      waiting += childPlaces(of: index)
    }
    return found
  }
}
