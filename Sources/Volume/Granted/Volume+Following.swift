// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

// How grants follow what they are for; see `Grants.swift` for the rules.

extension NameMove {
  var source: ResolvedPath.Step { ResolvedPath.Step(Array(name.buffer), in: from.number) }
  var target: ResolvedPath.Step { ResolvedPath.Step(Array(newName.buffer), in: to.number) }

  /// Whether something that was granted depends on one of the names.
  fileprivate func touches(_ grants: Grants) -> Bool {
    grants.touches(name, in: from.number) || grants.touches(newName, in: to.number)
  }
}

extension Volume {
  /// Makes a rename by `call`, and has grants follow it.
  func following<Made: ~Copyable>(
    _ move: NameMove, through view: PeerView, _ call: () throws(Errno) -> Made
  ) throws(Errno) -> Made {
    if move.touches(grants) {
      return try grants.moving.withLock { _ throws(Errno) in
        let made = try call()
        follow(move, through: view)
        return made
      }
    }
    let made = try call()
    // What was granted meanwhile.
    if move.touches(grants) { grants.moving.withLock { _ in follow(move, through: view) } }
    return made
  }

  /// A name has come or gone otherwise.
  func updateGrants(at name: Name, in directory: ChangedDirectory, through view: PeerView) {
    guard grants.touches(name, in: directory.number) else { return }
    let step = ResolvedPath.Step(Array(name.buffer), in: directory.number)
    grants.moving.withLock { _ in update(at: step, directory.fd, through: view) }
  }
}

/// What of a view's scope has another path.
struct ScopeMove {
  let old: [[UInt8]]
  let new: [[UInt8]]
}

extension Volume {
  /// Names in a directory have been changed by the daemon itself.
  func updateGrants(in directory: ObjectNumber) {
    let touched = grants.touches(directory)
    guard !touched.isEmpty else { return }
    grants.moving.withLock { _ in for id in touched { refresh(id) } }
  }

  /// A rename has been made.
  fileprivate func follow(_ move: NameMove, through view: PeerView) {
    // rename(2) leaves two names of one object as they are.
    if !move.isExchange, let left = try? move.from.fd.status(of: move.name),
      ObjectNumber(left) == move.moved.number
    {
      return
    }
    let (source, target) = (move.source, move.target)
    let staying = grants.ids(through: source) + grants.ids(through: target)
    let leaving = move.staysWithNames ? [] : grants.ids(through: source)
    let coming = move.staysWithNames || !move.isExchange ? [] : grants.ids(through: target)
    let thereAlready = Set(staying).subtracting(leaving).subtracting(coming)
    var changes = Changes()
    if !leaving.isEmpty { take(leaving, source, to: move.to.fd, target, by: view, &changes) }
    if !coming.isEmpty { take(coming, target, to: move.from.fd, source, by: view, &changes) }
    apply(changes, thereAlready)
    for id in staying where !changes.moved.keys.contains(id) { refresh(id) }
    restorePreviousNames(at: target, through: view)
  }

  private struct Changes {
    struct Moved {
      var new: Grants.Entry
      /// How many of its first steps are others now, and which; nil if it is nowhere.
      let steps: (old: Int, new: [ResolvedPath.Step])?
    }

    var moved: [Int64: Moved] = [:]
    var moves: [ScopeMove] = []
  }

  /// Works out where grants are whose names in one directory have become another in another.
  private func take(
    _ ids: [Int64], _ source: ResolvedPath.Step, to directory: FD, _ target: ResolvedPath.Step,
    by view: PeerView, _ changes: inout Changes
  ) {
    // All of them share the same path up to that name.
    let after = path(of: directory).map { $0 + [target.name] }
    let steps = after.map { resolvedPath(along: $0).steps } ?? []
    for id in ids {
      guard let old = grants.entry(id), let depth = old.steps.firstIndex(of: source) else { continue }
      var new = old
      new.previousName = nil
      let path = after.map { $0 + old.record.path[(depth + 1)...] }
      guard let after, let path, GrantPath.isShort(path) else {
        // The path is too long, so the object leaves the views. The kernel can't name it either.
        for holding in grants.views(of: old.holder) { holding.granted.drop(old.record.place) }
        changes.moved[id] = Changes.Moved(new: new, steps: nil)
        continue
      }
      new.record.path = path
      let isWhole = depth == old.record.path.count - 1
      if isWhole, !old.record.isDirectory, source.directory == target.directory {
        let isByHolder = grants.holder(ofView: view.number) == old.holder
        new.previousName = Grants.PreviousName(path: old.record.path, step: source, isByHolder: isByHolder)
      }
      // Whatever leads through one name in one directory has one path there.
      if changes.moves.last?.new != after {
        changes.moves.append(ScopeMove(old: Array(old.record.path[...depth]), new: after))
      }
      changes.moved[id] = Changes.Moved(new: new, steps: (depth + 1, steps))
    }
  }

  /// Applies the computed changes to all views, and reports them to the listener.
  ///
  /// `thereAlready` are grants that lead through the name to which something has come.
  private func apply(_ changes: Changes, _ thereAlready: Set<Int64>) {
    guard !changes.moved.isEmpty else { return }
    var merged: [Int64] = []
    var said: [GrantHolder: [(old: ScopePlace, new: ScopePlace)]] = [:]
    var stayed: [GrantHolder: [[[UInt8]]: Int64]] = [:]
    for entry in thereAlready.compactMap(grants.entry) {
      stayed[entry.holder, default: [:]][entry.record.path] = entry.record.id
    }
    for (id, change) in changes.moved {
      let new = change.new
      // Moved to where the app has been granted what was there: then that stands for both.
      if let other = stayed[new.holder]?[new.record.path], var kept = grants.entry(other) {
        grants.remove(id)
        let before = kept.record.place
        kept.record.isWritable = kept.record.isWritable || new.record.isWritable
        grants.put(kept)
        said[new.holder, default: []] += [
          (new.record.place, kept.record.place), (before, kept.record.place),
        ]
        merged.append(other)
      } else if let steps = change.steps {
        grants.move(new, steps: steps.old, to: steps.new)
      } else {
        var left = new
        left.steps = resolvedPath(along: left.record.path).steps
        grants.put(left)
        said[new.holder, default: []].append((left.record.place, left.record.place))
      }
    }
    for holder in Set(changes.moved.values.map(\.new.holder)) {
      for view in grants.views(of: holder) { view.granted.follow(changes.moves, said[holder] ?? []) }
    }
    grants.report(Array(changes.moved.keys) + merged)
  }

  // MARK: What stays with its name

  /// Something has come or gone at a name that leads to a grant.
  fileprivate func update(at step: ResolvedPath.Step, _ directory: FD, through view: PeerView) {
    for id in grants.ids(through: step) {
      refresh(id, at: step, directory)
      guard let entry = grants.entry(id), let previousName = entry.previousName else { continue }
      // An editor has renamed the file, written a new one under the name, and removed the old one.
      if resolvedPath(along: entry.record.path).found == nil,
        resolvedPath(along: previousName.path).found?.status.isRegular == true
      {
        restorePreviousName(id)
      }
    }
    restorePreviousNames(at: step, through: view)
  }

  /// If an app renamed its granted file and wrote a new one under the old name, the grant is for the new one.
  private func restorePreviousNames(at step: ResolvedPath.Step, through view: PeerView) {
    for id in grants.previousNames(at: step) {
      guard let entry = grants.entry(id), let previousName = entry.previousName, previousName.isByHolder,
        grants.holder(ofView: view.number) == entry.holder,
        resolvedPath(along: previousName.path).found?.status.isRegular == true
      else { continue }
      restorePreviousName(id)
    }
  }

  /// Makes a grant refer to its previous name again.
  private func restorePreviousName(_ id: Int64) {
    guard let old = grants.entry(id), let previousName = old.previousName else { return }
    var new = old
    new.previousName = nil
    new.record.path = previousName.path
    let resolved = resolvedPath(along: previousName.path)
    new.steps = resolved.steps
    if let found = resolved.found { new.record.identity = found.identity }
    grants.put(new)
    let move = ScopeMove(old: old.record.path, new: new.record.path)
    for view in grants.views(of: new.holder) { view.granted.follow([move]) }
    grants.report([id])
  }

  /// Looks again at what is on the way to a grant from a name on that has come or gone.
  private func refresh(_ id: Int64, at step: ResolvedPath.Step, _ directory: FD) {
    guard var entry = grants.entry(id), let depth = entry.steps.firstIndex(of: step) else { return }
    var rest = ResolvedPath()
    if let object = try? directory.child(step.name) {
      rest = resolvedPath(from: object, along: entry.record.path[(depth + 1)...])
    }
    let steps = entry.steps[...depth] + rest.steps
    let known = entry.record.identity
    if let found = rest.found { entry.record.identity = found.identity }
    guard entry.record.identity != known || !steps.elementsEqual(entry.steps) else { return }
    entry.steps = Array(steps)
    grants.put(entry)
    if entry.record.identity != known { grants.report([id]) }
  }

  /// Looks again at what is on the way to a grant.
  private func refresh(_ id: Int64) {
    guard var entry = grants.entry(id) else { return }
    let resolved = resolvedPath(along: entry.record.path)
    entry.steps = resolved.steps
    let known = entry.record.identity
    if let found = resolved.found { entry.record.identity = found.identity }
    grants.put(entry)
    if entry.record.identity != known { grants.report([id]) }
  }
}
