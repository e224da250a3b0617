// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Store

/// The names that lead to what was granted: a tree, like the tree of directories that they are in.
///
/// A rename takes one name along with everything below it, however many grants that are. All that lead
/// through a name share it, whoever granted them. Nothing here calls itself: a path has up to 128 names.
///
/// Only for the holder of the lock of ``Grants``.
final class GrantedNames {
  /// A name on the way to grants, or of what was granted.
  final class Place {
    fileprivate(set) var name: [UInt8]
    fileprivate(set) weak var parent: Place?
    fileprivate(set) var children: [[UInt8]: Place] = [:]
    /// The name in the directory that has it; nil if there was none when it was last looked up.
    fileprivate(set) var step: ResolvedPath.Step?
    /// What was granted under exactly this path.
    fileprivate(set) var ids: Set<Int64> = []
    /// How many grants of each user are here and below.
    fileprivate(set) var users: [UInt32: Int] = [:]

    fileprivate init(_ name: [UInt8]) { self.name = name }

    fileprivate var count: Int { users.values.reduce(0, +) }
    fileprivate var directory: ObjectNumber? { step?.directory }
  }

  private let root = Place([])
  private var places: [ResolvedPath.Step: [Place]] = [:]
  private let directories: DirectoryCounts
  private let budget: Budget

  init(_ directories: DirectoryCounts, _ budget: Budget) {
    self.directories = directories
    self.budget = budget
  }

  // MARK: Reading

  /// Whether a grant is reached through a name.
  func has(_ step: ResolvedPath.Step) -> Bool { places[step] != nil }

  /// Where a name is in the tree: in one place, unless a directory was moved behind the daemon's back.
  func places(of step: ResolvedPath.Step) -> [Place] { places[step] ?? [] }

  func places(in directory: ObjectNumber) -> [Place] {
    places.filter { $0.key.directory == directory }.flatMap(\.value)
  }

  func place(at path: [[UInt8]]) -> Place? {
    var place = root
    for name in path {
      guard let child = place.children[name] else { return nil }
      place = child
    }
    return place
  }

  func path(of place: Place) -> [[UInt8]] { chain(to: place).map(\.name) }

  /// The names on the way to a place as far as they were found.
  func steps(to place: Place) -> [ResolvedPath.Step] {
    var steps: [ResolvedPath.Step] = []
    for place in chain(to: place) {
      guard let step = place.step else { break }
      steps.append(step)
    }
    return steps
  }

  /// All grants in a place, and how many names and bytes of their paths come after its name.
  func grants(in place: Place) -> [(id: Int64, names: Int, bytes: Int)] {
    var found: [(id: Int64, names: Int, bytes: Int)] = []
    var waiting = [(place: place, names: 0, bytes: 0)]
    while let (place, names, bytes) = waiting.popLast() {
      for id in place.ids { found.append((id, names, bytes)) }
      for child in place.children.values {
        waiting.append((child, names + 1, bytes + child.name.count + 1))
      }
    }
    return found
  }

  /// How many of these names a user has no grant through.
  func countNew(_ path: [[UInt8]], of user: UInt32) -> Int {
    var place: Place? = root
    return path.count { name in
      place = place?.children[name]
      return place?.users[user] == nil
    }
  }

  private func chain(to place: Place) -> [Place] {
    var chain: [Place] = []
    var next: Place? = place
    while let place = next, place !== root {
      chain.append(place)
      next = place.parent
    }
    return chain.reversed()
  }

  // MARK: Grants

  /// Puts a grant at the end of a path, of which these names were found.
  func insert(_ id: Int64, of user: UInt32, at path: [[UInt8]], _ steps: [ResolvedPath.Step]) -> Place {
    let place = make(path, steps)
    if place.ids.insert(id).inserted { count([user: 1], upFrom: place, adding: true) }
    return place
  }

  func remove(_ id: Int64, of user: UInt32, at place: Place) {
    guard place.ids.remove(id) != nil else { return }
    count([user: 1], upFrom: place, adding: false)
    prune(place)
  }

  // MARK: Moving

  /// Takes a place out of the tree with everything in it.
  func detach(_ place: Place) {
    guard let parent = place.parent else { return }
    set(nil, of: place)
    parent.children[place.name] = nil
    place.parent = nil
    count(place.users, upFrom: parent, adding: false)
    prune(parent)
  }

  /// Puts a place that was taken out at a path.
  ///
  /// Gives those grants in it that are in other places now, because the tree had such a path already.
  func attach(
    _ place: Place, at path: [[UInt8]], _ steps: [ResolvedPath.Step]
  ) -> [(id: Int64, place: Place)] {
    guard let name = path.last, !place.users.isEmpty else { return [] }
    let parent = make(Array(path.dropLast()), steps)
    count(place.users, upFrom: parent, adding: true)
    place.name = name
    let step = steps.count == path.count ? steps.last : nil
    guard let there = parent.children[name] else {
      link(place, to: parent, step)
      return []
    }
    set(step, of: there)
    return merge(place, into: there)
  }

  private func link(_ place: Place, to parent: Place, _ step: ResolvedPath.Step?) {
    parent.children[place.name] = place
    place.parent = parent
    set(step, of: place)
  }

  private func merge(_ place: Place, into there: Place) -> [(id: Int64, place: Place)] {
    var moved: [(id: Int64, place: Place)] = []
    var waiting = [(from: place, to: there)]
    while let (from, to) = waiting.popLast() {
      add(from.users, to: to)
      to.ids.formUnion(from.ids)
      moved += from.ids.map { ($0, to) }
      let (users, children) = (from.users, from.children)
      subtract(users, from: from)
      from.children = [:]
      for (name, child) in children {
        let step = child.step
        set(nil, of: child)
        if let other = to.children[name] {
          set(step, of: other)
          waiting.append((child, other))
        } else {
          link(child, to: to, step)
        }
      }
    }
    return moved
  }

  // MARK: Places

  /// The place at the end of a path; the names after those that were found are nowhere.
  private func make(_ path: [[UInt8]], _ steps: [ResolvedPath.Step]) -> Place {
    var place = root
    for (depth, name) in path.enumerated() {
      let step = depth < steps.count ? steps[depth] : nil
      if let child = place.children[name] {
        set(step, of: child)
        place = child
      } else {
        let child = Place(name)
        link(child, to: place, step)
        place = child
      }
    }
    return place
  }

  /// Removes a place that leads to nothing any more, and those above it that led only there.
  private func prune(_ place: Place) {
    var place = place
    while place.users.isEmpty, let parent = place.parent {
      set(nil, of: place)
      parent.children[place.name] = nil
      place.parent = nil
      place = parent
    }
  }

  private func set(_ step: ResolvedPath.Step?, of place: Place) {
    let (old, count) = (place.step, place.count)
    place.step = step
    guard old != step else { return }
    if let new = step {
      directories.change(new.directory, by: count)
      places[new, default: []].append(place)
    }
    if let old {
      directories.change(old.directory, by: -count)
      places[old]?.removeAll { $0 === place }
      if places[old]?.isEmpty == true { places[old] = nil }
    }
  }

  private func count(_ users: [UInt32: Int], upFrom place: Place, adding isMore: Bool) {
    var next: Place? = place
    while let place = next, place !== root {
      if isMore { add(users, to: place) } else { subtract(users, from: place) }
      next = place.parent
    }
  }

  private func add(_ users: [UInt32: Int], to place: Place) {
    for (user, count) in users {
      let known = place.users[user]
      place.users[user] = (known ?? 0) + count
      if known == nil { budget.charge(.grantedNames, to: Payer(user: user)) }
      if let directory = place.directory { directories.change(directory, by: count) }
    }
  }

  private func subtract(_ users: [UInt32: Int], from place: Place) {
    for (user, count) in users {
      let left = (place.users[user] ?? 0) - count
      place.users[user] = left > 0 ? left : nil
      if left <= 0 { budget.give(.grantedNames, by: Payer(user: user)) }
      if let directory = place.directory { directories.change(directory, by: -count) }
    }
  }
}
