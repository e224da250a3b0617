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
  /// What is moved, and what it changes places with.
  let moved: ObjectNumber
  let exchanged: ObjectNumber?
  /// A container is a place and not what was chosen in it: what is granted there stays where it is when it is exchanged.
  let isOfPlace: Bool

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
    volume.grants.moving.withLock { _ in volume.settle(at: step, through: self) }
  }
}

/// What of a view's scope has another path.
struct ScopeMove {
  let old: [[UInt8]]
  let new: [[UInt8]]
}

/// What was at a path, and was moved away from there.
struct MovedObject {
  let path: [[UInt8]]
  let number: ObjectNumber
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
    let leaving = move.isOfPlace ? [] : grants.ids(through: source)
    let coming = move.isOfPlace || !move.isExchange ? [] : grants.ids(through: target)
    var changes = Changes()
    if !leaving.isEmpty {
      take(leaving, source, to: move.to, target, move.moved, by: view, &changes)
    }
    if !coming.isEmpty, let exchanged = move.exchanged {
      take(coming, target, to: move.from, source, exchanged, by: view, &changes)
    }
    apply(changes)
    for id in staying where !changes.moved.keys.contains(id) { refresh(id) }
    settleFormers(at: target, through: view)
  }

  private struct Changes {
    /// What each was before, and is now.
    var moved: [Int64: (old: Grants.Entry, new: Grants.Entry)] = [:]
    var moves: [ScopeMove] = []
    var objects: [MovedObject] = []
  }

  /// Works out where grants are whose names in one directory have become another in another.
  private func take(
    _ ids: [Int64], _ source: TreeWay.Step, to directory: FD, _ target: TreeWay.Step,
    _ object: ObjectNumber, by view: View, _ changes: inout Changes
  ) {
    let above = path(of: directory)
    for id in ids {
      guard let old = grants.entry(id), let depth = old.steps.firstIndex(of: source) else { continue }
      var new = old
      new.former = nil
      let before = Array(old.record.path[...depth])
      let after = above.map { $0 + [target.name] }
      if let after, GrantPath.isPath(after + old.record.path[(depth + 1)...]) {
        new.record.path = after + old.record.path[(depth + 1)...]
        let isWhole = depth == old.record.path.count - 1
        if isWhole, !old.record.isDirectory, source.directory == target.directory {
          let isByHolder = grants.holder(of: view) == old.holder
          new.former = Grants.Former(path: old.record.path, step: source, isByHolder: isByHolder)
        }
        if !changes.moves.contains(where: { $0.old == before }) {
          changes.moves.append(ScopeMove(old: before, new: after))
          changes.objects.append(MovedObject(path: before, number: object))
        }
      } else {
        // It is too deep for a path, and so out of the views: the kernel can't name it either.
        for holding in grants.views(of: old.holder) { holding.drop(old.record.place) }
      }
      changes.moved[id] = (old, new)
    }
  }

  /// Brings what has been worked out to all views, and to those who keep it.
  private func apply(_ changes: Changes) {
    guard !changes.moved.isEmpty else { return }
    var merged: [Int64] = []
    var objects = changes.objects
    var claims: [GrantHolder: [(old: ScopePlace, new: ScopePlace)]] = [:]
    // What is granted already where something has come to.
    var stayed: [GrantHolder: [[[UInt8]]: Int64]] = [:]
    for holder in Set(changes.moved.values.map(\.new.holder)) {
      for record in grants.records(of: holder) where changes.moved[record.id] == nil {
        stayed[holder, default: [:]][record.path] = record.id
      }
    }
    for (id, change) in changes.moved {
      var new = change.new
      // Moved to where the app has been granted what was there: then that stands for both.
      if let other = stayed[new.holder]?[new.record.path], var kept = grants.entry(other) {
        grants.remove(id)
        let before = kept.record.place
        kept.record.isWritable = kept.record.isWritable || new.record.isWritable
        grants.put(kept)
        claims[new.holder, default: []] += [
          (change.old.record.place, kept.record.place), (before, kept.record.place),
        ]
        merged.append(other)
        continue
      }
      let way = way(along: new.record.path)
      new.steps = way.steps
      if let found = way.found {
        new.record.identity = found.identity
        objects.append(MovedObject(path: change.old.record.path, number: found.number))
      }
      grants.put(new)
      claims[new.holder, default: []].append((change.old.record.place, new.record.place))
    }
    for (holder, claims) in claims {
      for view in grants.views(of: holder) { view.follow(claims, changes.moves, objects) }
    }
    grants.report(Array(changes.moved.keys) + merged)
  }

  // MARK: What stays with its name

  /// Something has come or gone at a name that leads to a grant.
  fileprivate func settle(at step: TreeWay.Step, through view: View) {
    for id in grants.ids(through: step) {
      refresh(id)
      guard let entry = grants.entry(id), let former = entry.former else { continue }
      // An editor has put the file aside, written it anew, and taken the old one away.
      if way(along: entry.record.path).found == nil, way(along: former.path).found?.status.isRegular == true {
        giveBack(id, keepingOther: false)
      }
    }
    settleFormers(at: step, through: view)
  }

  /// Where an app has put its file aside and written it anew, the new one is what it was granted; the other stays beside it.
  private func settleFormers(at step: TreeWay.Step, through view: View) {
    for id in grants.formers(at: step) {
      guard let entry = grants.entry(id), let former = entry.former, former.isByHolder,
        grants.holder(of: view) == entry.holder, way(along: former.path).found?.status.isRegular == true
      else { continue }
      giveBack(id, keepingOther: true)
    }
  }

  /// Lets a grant be for the name again that it was for before.
  private func giveBack(_ id: Int64, keepingOther: Bool) {
    guard let old = grants.entry(id), let former = old.former else { return }
    var new = old
    new.former = nil
    new.record.path = former.path
    let way = way(along: former.path)
    new.steps = way.steps
    if let found = way.found { new.record.identity = found.identity }
    grants.put(new)
    for view in grants.views(of: new.holder) {
      view.follow(
        [(old.record.place, new.record.place)], [], [], beside: keepingOther ? old.record.path : nil)
    }
    grants.report([id])
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
