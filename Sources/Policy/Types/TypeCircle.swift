// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Types that conform to themselves through others.
///
/// All of this takes time in proportion to what is declared.
package struct TypeCircle {
  /// Of several of one identifier, the first.
  private var types: [DeclaredType] = []
  /// By number, those of what each type conforms to.
  private var parents: [[Int]] = []
  /// By number; two of one group conform to each other.
  private var groups: [Int] = []

  private init(_ all: [DeclaredType]) {
    var numbers: [String: Int] = [:]
    for type in all {
      let key = DeclaredType.key(type.identifier)
      guard numbers[key] == nil else { continue }
      numbers[key] = types.count
      types.append(type)
    }
    parents = types.map { $0.parents.compactMap { numbers[DeclaredType.key($0)] } }
    groups = Self.groups(parents)
  }

  /// The identifiers on a circle that one of these types is on; nil where none is on any.
  ///
  /// `others` are those that they may conform to, besides those of the base system, which conform to none of
  /// either.
  package static func find(in types: [DeclaredType], among others: [DeclaredType] = []) -> [String]? {
    let all = TypeCircle(types + others)
    let own = Set(types.map { DeclaredType.key($0.identifier) }).count
    guard let start = (0..<own).first(where: { !all.onCircle($0).isEmpty }) else { return nil }
    return all.circle(through: start).map { all.types[$0].identifier }
  }

  /// The types without circles: those from an index on don't conform to what conforms to them.
  package static func cutting(_ types: [DeclaredType], from index: Int = 0) -> [DeclaredType] {
    let all = TypeCircle(types)
    var cut: [String: Set<String>] = [:]
    for number in all.types.indices {
      let names = all.onCircle(number).map { DeclaredType.key(all.types[$0].identifier) }
      if !names.isEmpty { cut[DeclaredType.key(all.types[number].identifier)] = Set(names) }
    }
    guard !cut.isEmpty else { return types }
    return types[..<index]
      + types[index...].map { type in
        cut[DeclaredType.key(type.identifier)].map { names in
          DeclaredType(
            type.identifier, parents: type.parents.filter { !names.contains(DeclaredType.key($0)) },
            extensions: type.extensions, mimeTypes: type.mimeTypes, kind: type.kind)
        } ?? type
      }
  }

  /// What a type conforms to that conforms to it, or is it.
  private func onCircle(_ number: Int) -> [Int] {
    parents[number].filter { groups[$0] == groups[number] }
  }

  /// The shortest circle through a type that is on one.
  private func circle(through start: Int) -> [Int] {
    var before: [Int: Int] = [:]
    var reached = [start]
    var next = 0
    while next < reached.count {
      let number = reached[next]
      next += 1
      for parent in onCircle(number) {
        if parent == start {
          var circle = [number]
          while let last = circle.last, let earlier = before[last] { circle.append(earlier) }
          return circle.reversed()
        }
        guard before[parent] == nil else { continue }
        before[parent] = number
        reached.append(parent)
      }
    }
    return [start]
  }

  /// The strongly connected components of a graph, as Tarjan's algorithm finds them; without recursion, since
  /// a chain of types may be long.
  private static func groups(_ parents: [[Int]]) -> [Int] {
    let none = -1
    var groups = [Int](repeating: none, count: parents.count)
    var order = groups
    var lowest = groups
    var count = 0
    var open: [Int] = []
    var path: [(node: Int, next: Int)] = []
    for start in parents.indices where order[start] == none {
      path.append((start, 0))
      while let (node, next) = path.last {
        if order[node] == none {
          (order[node], lowest[node]) = (count, count)
          count += 1
          open.append(node)
        }
        if next < parents[node].count {
          path[path.count - 1].next += 1
          let parent = parents[node][next]
          if order[parent] == none {
            path.append((parent, 0))
          } else if groups[parent] == none {
            lowest[node] = min(lowest[node], order[parent])
          }
          continue
        }
        path.removeLast()
        if let child = path.last?.node { lowest[child] = min(lowest[child], lowest[node]) }
        guard lowest[node] == order[node] else { continue }
        while let member = open.popLast() {
          groups[member] = node
          if member == node { break }
        }
      }
    }
    return groups
  }
}
