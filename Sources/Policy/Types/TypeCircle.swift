// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Types that conform to themselves through others.
package enum TypeCircle {
  /// The identifiers on a circle that one of these types is on; nil where none is on any.
  ///
  /// `others` are those that they may conform to, besides those of the base system, which conform to none of
  /// either.
  package static func find(in types: [DeclaredType], among others: [DeclaredType] = []) -> [String]? {
    var known: [String: DeclaredType] = [:]
    for type in types + others {
      let key = DeclaredType.key(type.identifier)
      if known[key] == nil { known[key] = type }
    }
    // What conforms to nothing more is taken off, until only circles are left and what leads into them.
    var waiting: [String: Int] = [:]
    var children: [String: [String]] = [:]
    var done: [String] = []
    for (key, type) in known {
      let parents = Set(type.parents.map(DeclaredType.key)).filter { known[$0] != nil }
      waiting[key] = parents.count
      if parents.isEmpty { done.append(key) }
      for parent in parents { children[parent, default: []].append(key) }
    }
    while let key = done.popLast() {
      waiting[key] = nil
      for child in children[key] ?? [] {
        guard let count = waiting[child] else { continue }
        waiting[child] = count - 1
        if count == 1 { done.append(child) }
      }
    }
    for type in types {
      var path: [String] = []
      var next: String? = DeclaredType.key(type.identifier)
      while let key = next, waiting[key] != nil, !path.contains(key) {
        path.append(key)
        next = known[key]?.parents.map(DeclaredType.key).first { waiting[$0] != nil }
      }
      guard let start = next.flatMap({ path.firstIndex(of: $0) }) else { continue }
      let circle = path[start...].compactMap { known[$0]?.identifier }
      let own = Set(types.map { DeclaredType.key($0.identifier) })
      if path[start...].contains(where: own.contains) { return circle }
    }
    return nil
  }
}
