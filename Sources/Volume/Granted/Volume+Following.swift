// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

/// A rename that is about to be made.
struct NameMove {
  let name: Name
  let from: FD
  let fromNumber: ObjectNumber
  let newName: Name
  let to: FD
  let toNumber: ObjectNumber
  let isExchange: Bool
  let moved: ObjectNumber
  /// Whether what is granted stays with the names.
  ///
  /// A container is a place and not what was chosen in it; and an app that has a file alone renames nothing
  /// but to save it.
  let staysWithNames: Bool

  var source: TreeWay.Step { TreeWay.Step(Array(name.buffer), in: fromNumber) }
  var target: TreeWay.Step { TreeWay.Step(Array(newName.buffer), in: toNumber) }

  /// Whether something that was granted hangs on one of the names.
  func touches(_ grants: Grants) -> Bool {
    !grants.isEmpty && (grants.touches(source) || grants.touches(target))
  }
}

// How grants follow what they are for; see `Grants.swift` for the rules.

extension View {
  /// Makes a rename, and has grants follow it.
  func following(_ move: NameMove, _ body: () throws(Errno) -> Void) throws(Errno) {
    let grants = volume.grants
    if move.touches(grants) {
      return try grants.moving.withLock { _ throws(Errno) in
        try body()
        volume.follow(move, through: self)
      }
    }
    try body()
    // What was granted meanwhile.
    if move.touches(grants) {
      grants.moving.withLock { _ in volume.follow(move, through: self) }
    }
  }

  /// A name has come or gone otherwise.
  func noteForGrants(_ name: Name, in directory: borrowing NodeTable.Pin) {
    if volume.grants.isEmpty { return }
    let step = TreeWay.Step(Array(name.buffer), in: directory.number)
    guard volume.grants.touches(step) else { return }
    let fd = directory.fd
    volume.grants.moving.withLock { _ in volume.settle(at: step, fd, through: self) }
  }
}

/// What of a view's scope has another path.
struct ScopeMove {
  let old: [[UInt8]]
  let new: [[UInt8]]
}

extension Volume {
  /// Names in a directory have been changed by the daemon itself.
  func settleGrants(in directory: ObjectNumber) {
    let touched = grants.touches(directory)
    guard !touched.isEmpty else { return }
    grants.moving.withLock { _ in for id in touched { refresh(id) } }
  }

  /// A rename has been made.
  fileprivate func follow(_ move: NameMove, through view: View) {
    // rename(2) leaves two names of one object as they are.
    if !move.isExchange, let left = try? move.from.status(of: move.name), ObjectNumber(left) == move.moved {
      return
    }
    let (source, target) = (move.source, move.target)
    let staying = grants.ids(through: source) + grants.ids(through: target)
    let leaving = move.staysWithNames ? [] : grants.ids(through: source)
    let coming = move.staysWithNames || !move.isExchange ? [] : grants.ids(through: target)
    let thereAlready = Set(staying).subtracting(leaving).subtracting(coming)
    var changes = Changes()
    if !leaving.isEmpty { take(leaving, source, to: move.to, target, by: view, &changes) }
    if !coming.isEmpty { take(coming, target, to: move.from, source, by: view, &changes) }
    apply(changes, thereAlready)
    for id in staying where !changes.moved.keys.contains(id) { refresh(id) }
    settleFormers(at: target, through: view)
  }

  private struct Changes {
    struct Moved {
      let old: Grants.Entry
      var new: Grants.Entry
      /// How many of its first steps are others now, and which; nil if it is nowhere.
      let steps: (old: Int, new: [TreeWay.Step])?
    }

    var moved: [Int64: Moved] = [:]
    var moves: [ScopeMove] = []
  }

  /// Works out where grants are whose names in one directory have become another in another.
  private func take(
    _ ids: [Int64], _ source: TreeWay.Step, to directory: FD, _ target: TreeWay.Step,
    by view: View, _ changes: inout Changes
  ) {
    // All of them have the same way there: what leads to one name in one directory.
    let after = path(of: directory).map { $0 + [target.name] }
    let steps = after.map { way(along: $0).steps } ?? []
    for id in ids {
      guard let old = grants.entry(id), let depth = old.steps.firstIndex(of: source) else { continue }
      var new = old
      new.former = nil
      let path = after.map { $0 + old.record.path[(depth + 1)...] }
      guard let after, let path, GrantPath.isShort(path) else {
        // It is too deep for a path, and so out of the views: the kernel can't name it either.
        for holding in grants.views(of: old.holder) { holding.drop(old.record.place) }
        changes.moved[id] = Changes.Moved(old: old, new: new, steps: nil)
        continue
      }
      new.record.path = path
      let isWhole = depth == old.record.path.count - 1
      if isWhole, !old.record.isDirectory, source.directory == target.directory {
        let isByHolder = grants.holder(of: view) == old.holder
        new.former = Grants.Former(path: old.record.path, step: source, isByHolder: isByHolder)
      }
      // Whatever leads through one name in one directory has one path there.
      if changes.moves.last?.new != after {
        changes.moves.append(ScopeMove(old: Array(old.record.path[...depth]), new: after))
      }
      changes.moved[id] = Changes.Moved(old: old, new: new, steps: (depth + 1, steps))
    }
  }

  /// Brings what has been worked out to all views, and to those who keep it.
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
        left.steps = way(along: left.record.path).steps
        grants.put(left)
        said[new.holder, default: []].append((left.record.place, left.record.place))
      }
    }
    for holder in Set(changes.moved.values.map(\.new.holder)) {
      for view in grants.views(of: holder) { view.follow(changes.moves, said[holder] ?? []) }
    }
    grants.report(Array(changes.moved.keys) + merged)
  }

  // MARK: What stays with its name

  /// Something has come or gone at a name that leads to a grant.
  fileprivate func settle(at step: TreeWay.Step, _ directory: FD, through view: View) {
    for id in grants.ids(through: step) {
      refresh(id, at: step, directory)
      guard let entry = grants.entry(id), let former = entry.former else { continue }
      // An editor has put the file aside, written it anew, and taken the old one away.
      if way(along: entry.record.path).found == nil, way(along: former.path).found?.status.isRegular == true {
        giveBack(id)
      }
    }
    settleFormers(at: step, through: view)
  }

  /// Where an app has put its file aside and written it anew, the new one is what it was granted.
  private func settleFormers(at step: TreeWay.Step, through view: View) {
    for id in grants.formers(at: step) {
      guard let entry = grants.entry(id), let former = entry.former, former.isByHolder,
        grants.holder(of: view) == entry.holder, way(along: former.path).found?.status.isRegular == true
      else { continue }
      giveBack(id)
    }
  }

  /// Lets a grant be for the name again that it was for before.
  private func giveBack(_ id: Int64) {
    guard let old = grants.entry(id), let former = old.former else { return }
    var new = old
    new.former = nil
    new.record.path = former.path
    let way = way(along: former.path)
    new.steps = way.steps
    if let found = way.found { new.record.identity = found.identity }
    grants.put(new)
    let move = ScopeMove(old: old.record.path, new: new.record.path)
    for view in grants.views(of: new.holder) { view.follow([move]) }
    grants.report([id])
  }

  /// Looks again at what is on the way to a grant from a name on that has come or gone.
  private func refresh(_ id: Int64, at step: TreeWay.Step, _ directory: FD) {
    guard var entry = grants.entry(id), let depth = entry.steps.firstIndex(of: step) else { return }
    var rest = TreeWay()
    if let object = try? directory.child(step.name) {
      rest = way(from: object, along: entry.record.path[(depth + 1)...])
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
    let way = way(along: entry.record.path)
    entry.steps = way.steps
    let known = entry.record.identity
    if let found = way.found { entry.record.identity = found.identity }
    grants.put(entry)
    if entry.record.identity != known { grants.report([id]) }
  }
}
