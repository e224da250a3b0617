// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

// What renames make of grants.

extension Grants {
  /// A name was given to what another name stood for.
  struct Relocation {
    let source: ResolvedPath.Step
    /// The path by which it is found now, and its names as far as they were found; nil if there is no path.
    var path: [[UInt8]]?
    var steps: [ResolvedPath.Step]
    /// Who moved a file within its directory may be an editor, which writes a new one under the old name.
    let isWithinOneDirectory: Bool
    /// The app that did it, if it was one.
    let mover: GrantHolder?
    /// The new name.
    var target: ResolvedPath.Step?
  }

  /// What relocations have made of grants.
  struct Relocated {
    /// All that are concerned.
    var ids: Set<Int64> = []
    /// What of the scopes has another path.
    var moves: [ScopeMove] = []
    /// What scopes must withdraw and admit besides.
    var changes: [GrantHolder: [(old: ScopePlace, new: ScopePlace)]] = [:]
    /// Those that are at the old path still, since they have no path that is short enough.
    var left: [Entry] = []
    /// Those who hold them, if they have a view.
    var holders: Set<GrantHolder> = []
  }

  /// Has grants follow the objects that have other names now, if their paths are still as they were seen by
  /// who began to look at some time; else gives what keeps them from that.
  ///
  /// With `isLast` those whose path can't be known have none.
  func relocate(
    _ relocations: [Relocation], since began: UInt64, besides own: [ResolvedPath.Step], isLast: Bool
  ) -> (relocated: Relocated?, outcome: Outcome) {
    state.withLock { state in
      var found = relocations
      let announced = announce(found.flatMap(\.steps))
      defer { end(announced: announced, state) }
      for index in found.indices where state.names.has(found[index].source) {
        guard found[index].path != nil, let target = found[index].target else { continue }
        let outcome: Outcome
        let seen = found[index].steps
        switch changes.withLock({ $0.answer(seen, since: began, besides: own) }) {
        case .asSeen: continue
        case .changed: outcome = .changed
        case .changing(let step): outcome = .changing(step)
        }
        // What is known of the directory changes with what others rename above it.
        let isWithin = found[index].isWithinOneDirectory
        let places =
          isWithin
          ? state.names.places(of: found[index].source) : state.names.places(in: target.directory)
        guard let beside = places.first else {
          if !isLast { return (nil, outcome) }
          (found[index].path, found[index].steps) = (nil, [])
          continue
        }
        let (path, steps) = (state.names.path(of: beside), state.names.steps(to: beside))
        found[index].path = path.dropLast() + [target.name]
        found[index].steps = steps.count == path.count ? steps.dropLast() + [target] : steps
      }
      return (relocate(found, &state), .done)
    }
  }

  /// Has grants follow the objects that have other names now; all of these names changed at once.
  func relocate(_ relocations: [Relocation]) -> Relocated {
    state.withLock { relocate(relocations, &$0) }
  }

  /// Gives a name on the paths of grants this spelling; nil where they have it already.
  func respell(_ step: ResolvedPath.Step) -> Relocated? {
    state.withLock { state -> Relocated? in
      let places = state.names.places(of: step)
      guard let other = places.first(where: { $0.name != step.name }) else { return nil }
      let path = state.names.path(of: other).dropLast() + [step.name]
      let steps = state.names.steps(to: other).dropLast() + [step]
      let relocation = Relocation(
        source: step, path: Array(path), steps: Array(steps), isWithinOneDirectory: false, mover: nil)
      return relocate([relocation], &state)
    }
  }

  private func relocate(_ relocations: [Relocation], _ state: inout State) -> Relocated {
    // All of them are found before any is moved: two may have been exchanged.
    let found = relocations.flatMap { relocation in
      state.names.places(of: relocation.source).map { place in
        (place: place, old: state.names.path(of: place), steps: state.names.steps(to: place), relocation)
      }
    }
    let keeping = found.flatMap { keepCounts(of: $0.steps, nil) }
    defer { end(keeping) }
    var relocated = Relocated()
    for (place, old, _, relocation) in found {
      takeOut(place, at: old, relocation, &relocated, &state)
      state.names.detach(place)
    }
    for (place, _, _, relocation) in found {
      guard let path = relocation.path else { continue }
      let moved = state.names.attach(place, at: path, relocation.steps)
      for (id, place) in moved { state.entries[id]?.place = place }
      for (id, _) in moved { unite(id, &relocated, &state) }
    }
    for entry in relocated.left { hold(entry, nil, &state) }
    if !state.views.isEmpty {
      relocated.holders = Set(relocated.ids.compactMap { state.entries[$0]?.holder })
    }
    publishCount(state)
    return relocated
  }

  /// Prepares the grants in a place for their new path; those that can't have it leave the place.
  private func takeOut(
    _ place: GrantedNames.Place, at old: [[UInt8]], _ relocation: Relocation, _ relocated: inout Relocated,
    _ state: inout State
  ) {
    let path = relocation.path ?? []
    let (length, depth) = (GrantPath.length(path), path.count)
    let crowded = place.users.keys.filter { user in
      !hasRoom(for: state.names.countNew(path, of: user), user)
    }
    for (id, names, bytes) in state.names.grants(in: place) {
      relocated.ids.insert(id)
      state.markAnew(id)
      let isShort = length + bytes <= GrantPath.longest && depth + names <= GrantPath.deepest
      let user = state.entries[id]?.record.user
      let fits = !path.isEmpty && isShort && !crowded.contains { $0 == user }
      var previousName: PreviousName?
      if fits, bytes == 0, relocation.isWithinOneDirectory,
        let placed = state.entries[id], !placed.record.isDirectory
      {
        previousName = PreviousName(
          path: old, step: relocation.source, isByHolder: relocation.mover == placed.holder)
      }
      note(previousName, of: id, &state)
      if !fits, let entry = forget(id, &state) { relocated.left.append(entry) }
    }
    if !path.isEmpty { relocated.moves.append(ScopeMove(old: old, new: path)) }
  }

  /// If a grant was moved to where its app was granted what was there, that one stands for both.
  private func unite(_ id: Int64, _ relocated: inout Relocated, _ state: inout State) {
    guard let new = state.entry(id), let place = state.entries[id]?.place,
      let other = place.ids.first(where: { $0 != id && state.entries[$0]?.holder == new.holder }),
      let known = state.record(other)
    else { return }
    let before = known.place
    guard known.isDirectory == new.record.isDirectory else {
      // What that one was for is gone, and what has its name now is of another kind.
      forget(other, &state)
      relocated.ids.insert(other)
      relocated.changes[new.holder, default: []].append((before, new.record.place))
      return
    }
    forget(id, &state)
    if new.record.isWritable, !known.isWritable {
      state.entries[other]?.record.isWritable = true
      state.markAnew(other)
    }
    guard let kept = state.record(other)?.place else { return }
    relocated.ids.insert(other)
    relocated.changes[new.holder, default: []] += [(new.record.place, kept), (before, kept)]
  }
}
