// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Of which part of the tree a backup is.
package enum BackupExtent: Equatable, Sendable {
  case wholeTree
  /// A user's home, with everything in it.
  case home(String)
  /// Some containers, by their paths below the root of the tree.
  case containers([String])

  /// What there is of the tree in a view for the backup, before the marks on objects are looked at.
  package var scope: Scope {
    var places: [ScopePlace]
    switch self {
    case .wholeTree:
      // What has a place of its own is not what a pattern stands for.
      let shared = ScopePlace("Users/\(BackupSet.shared)", .read)
      places = [ScopePlace([], .read), shared] + BackupSet.rules.map { $0.place(below: []) }
    case .home(let name):
      places = Self.places(at: ["Users", name])
    case .containers(let paths):
      places = paths.flatMap { Self.places(at: $0.split(separator: "/").map(String.init)) }
    }
    return Scope(places)
  }

  /// A place with the rules that hold in it.
  private static func places(at path: [String]) -> [ScopePlace] {
    let rules = BackupSet.rules.filter { rule in
      rule.path.count > path.count && zip(rule.path, path).allSatisfy { $0 == "*" || $0 == $1 }
    }
    return [ScopePlace(path.map { Array($0.utf8) }, .read)] + rules.map { $0.place(below: path) }
  }
}

extension BackupSet.Rule {
  /// The same for a view, with the names of `place` for its first ones.
  fileprivate func place(below place: [String]) -> ScopePlace {
    let names = place.map { Array($0.utf8) }
    let rest = path.dropFirst(place.count).map { $0 == "*" ? ScopePlace.pattern("") : Array($0.utf8) }
    return ScopePlace(names + rest, .absent)
  }
}
