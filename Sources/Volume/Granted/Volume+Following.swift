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

  /// Of whom something that was granted depends on one of the names; where nothing is granted no lock is
  /// taken.
  fileprivate func users(_ grants: Grants) -> Set<UInt32> {
    let (isFrom, isTo) = (grants.mayTouch(from.number), grants.mayTouch(to.number))
    return isFrom || isTo ? grants.users(at: (isFrom ? [source] : []) + (isTo ? [target] : [])) : []
  }
}

extension Volume {
  /// Makes a rename by `call`, and has grants follow it.
  func following<Made: ~Copyable>(
    _ move: NameMove, through view: PeerView, _ call: () throws(Errno) -> Made
  ) throws(Errno) -> Made {
    let users = move.users(grants)
    guard !users.isEmpty else {
      let made = try call()
      // What was granted meanwhile.
      let users = move.users(grants)
      if !users.isEmpty { follow(move, through: view, grants.moving.hold(users)) }
      return made
    }
    let hold = grants.moving.hold(users)
    let made = try call()
    follow(move, through: view, hold)
    return made
  }

  /// A name has come or gone otherwise.
  func updateGrants(at name: Name, in directory: ChangedDirectory, through view: PeerView) {
    guard grants.touches(name, in: directory.number) else { return }
    let step = ResolvedPath.Step(Array(name.buffer), in: directory.number)
    var hold = grants.moving.hold([])
    hold.widen { grants.users(at: [step]) }
    update(at: step, directory.fd, through: view)
    hold.end()
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
    guard grants.mayTouch(directory) || grants.areLoading else { return }
    // Inside the lock: what is moved or loaded just now may lead through this directory when that is done.
    var hold = grants.moving.hold([])
    hold.widen { grants.users(in: directory) }
    for id in grants.touches(directory) { refresh(id) }
    hold.end()
  }

  /// A rename has been made, by whoever has the locks of whom it concerned; by now it may be more.
  fileprivate func follow(_ move: NameMove, through view: PeerView, _ held: consuming GrantMoves.Hold) {
    held.widen { move.users(grants) }
    follow(move, through: view)
    held.end()
  }

  private func follow(_ move: NameMove, through view: PeerView) {
    // rename(2) leaves two names of one object as they are.
    if !move.isExchange, let left = try? move.from.fd.status(of: move.name),
      ObjectNumber(left) == move.moved.number
    {
      return
    }
    let (source, target) = (move.source, move.target)
    var staying = grants.ids(through: target)
    var relocations: [Grants.Relocation] = []
    if move.staysWithNames {
      staying += grants.ids(through: source)
    } else {
      relocations.append(relocation(from: source, to: target, in: move.to.fd, by: view))
      if move.isExchange {
        staying = []
        relocations.append(relocation(from: target, to: source, in: move.from.fd, by: view))
      }
    }
    apply(grants.relocate(relocations))
    for id in staying { refresh(id) }
    restorePreviousNames(at: target, through: view)
  }

  private func relocation(
    from source: ResolvedPath.Step, to target: ResolvedPath.Step, in directory: FD, by view: PeerView
  ) -> Grants.Relocation {
    let path = path(of: directory).map { $0 + [target.name] }
    return Grants.Relocation(
      source: source, path: path, steps: path.map { resolvedPath(along: $0, for: nil).steps } ?? [],
      isWithinOneDirectory: source.directory == target.directory, mover: grants.holder(ofView: view.number))
  }

  /// Shows in all views what has become of grants, and reports it to the listener.
  private func apply(_ relocated: Grants.Relocated) {
    guard !relocated.ids.isEmpty else { return }
    var changes = relocated.changes
    for entry in relocated.left {
      // The path is too long, so the object leaves the views. The kernel can't name it either.
      let place = entry.record.place
      for view in grants.views(of: entry.holder) { view.granted.drop(place) }
      changes[entry.holder, default: []].append((place, place))
      refresh(entry.record.id)
    }
    for holder in relocated.holders {
      for view in grants.views(of: holder) { view.granted.follow(relocated.moves, changes[holder] ?? []) }
    }
    grants.report(Array(relocated.ids))
  }

  // MARK: What stays with its name

  /// Something has come or gone at a name that leads to a grant.
  fileprivate func update(at step: ResolvedPath.Step, _ directory: FD, through view: PeerView) {
    for id in grants.ids(through: step) {
      refresh(id, at: step, directory)
      guard let entry = grants.entry(id), let previousName = entry.previousName else { continue }
      // An editor has renamed the file, written a new one under the name, and removed the old one.
      if !resolvedPath(along: entry.record.path, for: entry.record.user).isThere,
        resolvedPath(along: previousName.path, for: entry.record.user).found?.status.isRegular == true
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
        resolvedPath(along: previousName.path, for: entry.record.user).found?.status.isRegular == true
      else { continue }
      restorePreviousName(id)
    }
  }

  /// Makes a grant refer to its previous name again.
  private func restorePreviousName(_ id: Int64) {
    guard let old = grants.entry(id), let previousName = old.previousName else { return }
    var new = old
    new.previousName = nil
    // What the user has granted under that name since then stands, with the access that it has.
    guard grants.record(of: old.holder, at: previousName.path) == nil else { return grants.update(new) }
    new.record.path = previousName.path
    let resolved = resolvedPath(along: previousName.path, for: old.record.user)
    new.steps = resolved.steps
    if let found = resolved.found { new.record.identity = found.identity }
    grants.update(new)
    let move = ScopeMove(old: old.record.path, new: new.record.path)
    for view in grants.views(of: new.holder) { view.granted.follow([move]) }
    grants.report([id])
  }

  /// Looks again at what is on the way to a grant from a name on that has come or gone.
  private func refresh(_ id: Int64, at step: ResolvedPath.Step, _ directory: FD) {
    guard var entry = grants.entry(id), let depth = entry.steps.firstIndex(of: step) else { return }
    var rest = ResolvedPath()
    do throws(Errno) {
      let object = try directory.child(step.name)
      rest = resolvedPath(
        from: object, along: entry.record.path[(depth + 1)...], for: entry.record.user)
    } catch {
      rest.isMissing = error == .ENOENT
    }
    let steps = entry.steps[...depth] + rest.steps
    let known = entry.record.identity
    entry.note(rest)
    guard entry.record.identity != known || !steps.elementsEqual(entry.steps) else { return }
    entry.steps = Array(steps)
    grants.update(entry)
    if entry.record.identity != known { grants.report([id]) }
  }

  /// Looks again at what is on the way to a grant.
  @inline(never)
  private func refresh(_ id: Int64) {
    guard var entry = grants.entry(id) else { return }
    let resolved = resolvedPath(along: entry.record.path, for: entry.record.user)
    entry.steps = resolved.steps
    let known = entry.record.identity
    entry.note(resolved)
    grants.update(entry)
    if entry.record.identity != known { grants.report([id]) }
  }
}

extension Grants.Entry {
  /// Sets what is at its path by now.
  ///
  /// If that is nothing, the grant is for what will be there: another name of what was there is not it.
  fileprivate mutating func note(_ resolved: ResolvedPath) {
    if let found = resolved.found {
      record.identity = found.identity
    } else if resolved.isMissing, !resolved.isOnVolume {
      record.identity = ObjectIdentity(inode: 0, handle: [], created: 0)
    }
  }
}
