// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy
internal import Store
internal import Synchronization

// How grants follow what they are for; see `Grants.swift` for the rules.

extension NameMove {
  var source: ResolvedPath.Step { from.step(name) }
  var target: ResolvedPath.Step { to.step(newName) }

  /// Of whom something that was granted depends on one of the names; where nothing is granted no lock is
  /// taken.
  fileprivate func users(_ grants: Grants) -> Set<UInt32> {
    let (isFrom, isTo) = (grants.mayTouch(from.number), grants.mayTouch(to.number))
    return isFrom || isTo ? grants.users(at: (isFrom ? [source] : []) + (isTo ? [target] : [])) : []
  }
}

extension Volume {
  /// Makes a rename by `call`, and has grants follow it.
  ///
  /// The call may wait for as long as somebody holds a file.
  func following<Made: ~Copyable>(
    _ move: NameMove, through view: PeerView, _ call: () throws(Errno) -> Made
  ) throws(Errno) -> Made {
    let names = NamesUnderWay.Names(move)
    grants.begin(names)
    let made: Made
    do throws(Errno) { made = try call() } catch {
      look(at: grants.end(names), waiting: false)
      throw error
    }
    let touched = move.users(grants).isEmpty ? nil : follow(move, through: view)
    let late = grants.end(names)
    guard let touched else {
      look(at: late, waiting: false)
      return made
    }
    let mover = grants.holder(ofView: view.number)
    let again = grants.previousNames(at: move.target)
    look(at: touched + late + again, on: GrantLooks.Occasion(step: move.target, mover: mover))
    return made
  }

  /// A name has come or gone otherwise.
  func updateGrants(at name: Name, in directory: ChangedDirectory, through view: PeerView) {
    guard grants.mayTouch(directory.number) else { return }
    let step = directory.step(name)
    guard grants.touches(step) else { return }
    let mover = grants.holder(ofView: view.number)
    look(
      at: grants.ids(through: step) + grants.previousNames(at: step),
      on: GrantLooks.Occasion(step: step, mover: mover, isUpdate: true))
  }

  /// Names in a directory have been changed by the daemon itself.
  func updateGrants(in directory: ObjectNumber) {
    // Who looks just now, or loads what was granted, looks again.
    grants.noteChange(in: directory)
    look(at: grants.touches(directory))
  }
}

/// What of a view's scope has another path.
struct ScopeMove {
  let old: [[UInt8]]
  let new: [[UInt8]]
}

extension Volume {
  /// How often something is looked at that others change meanwhile.
  static let mostLooks = 30
  /// How long a rename waits for another one that makes unknown where it has led to.
  private static let patienceNanoseconds: UInt64 = 50_000_000

  /// A rename has been made; those that are to be looked at after it are the answer.
  ///
  /// Nobody finds its names until its request is answered, so that the old path leads to nothing else.
  private func follow(_ move: NameMove, through view: PeerView) -> [Int64]? {
    // rename(2) leaves two names of one object as they are.
    if !move.isExchange, let left = try? move.from.fd.status(of: move.name),
      ObjectNumber(left) == move.moved.number
    {
      return nil
    }
    let (source, target) = (move.source, move.target)
    let end = monotonicNanoseconds() &+ Self.patienceNanoseconds
    while true {
      let (began, isLast) = (grants.time, millisecondsLeft(until: end) == 0)
      let relocations = relocations(move, by: view)
      // By now it may be more whom it concerns.
      var hold = grants.moving.hold([])
      hold.widen { move.users(grants) }
      let staying =
        (move.isExchange && !move.staysWithNames ? [] : grants.ids(through: target))
        + (move.staysWithNames ? grants.ids(through: source) : [])
      let (relocated, outcome) = grants.relocate(
        relocations, since: began, besides: [source, target], isLast: isLast)
      let left = relocated.map(apply)
      hold.end()
      if let left { return staying + left }
      if case .changing(let step) = outcome { grants.wait(for: step, until: end) }
    }
  }

  private func relocations(_ move: NameMove, by view: PeerView) -> [Grants.Relocation] {
    if move.staysWithNames { return [] }
    let first = relocation(from: move.source, to: move.target, in: move.to.fd, by: view)
    guard move.isExchange else { return [first] }
    return [first, relocation(from: move.target, to: move.source, in: move.from.fd, by: view)]
  }

  private func relocation(
    from source: ResolvedPath.Step, to target: ResolvedPath.Step, in directory: FD, by view: PeerView
  ) -> Grants.Relocation {
    let path = path(of: directory).map { $0 + [target.name] }
    return Grants.Relocation(
      source: source, path: path, steps: path.map { resolvedPath(along: $0, for: nil).steps } ?? [],
      isWithinOneDirectory: source.directory == target.directory,
      mover: grants.holder(ofView: view.number), target: target)
  }

  /// Shows in all views what has become of grants, and reports it to the listener; those that are to be
  /// looked at are the answer.
  private func apply(_ relocated: Grants.Relocated) -> [Int64] {
    guard !relocated.ids.isEmpty else { return [] }
    var changes = relocated.changes
    for entry in relocated.left {
      // The path is too long, or not known, so the object leaves the views. If it is too long the kernel
      // can't name it either.
      let place = entry.record.place
      for view in grants.views(of: entry.holder) { view.granted.drop(place) }
      changes[entry.holder, default: []].append((place, place))
    }
    for holder in relocated.holders {
      for view in grants.views(of: holder) { view.granted.follow(relocated.moves, changes[holder] ?? []) }
    }
    grants.report(Array(relocated.ids))
    return relocated.left.map(\.record.id)
  }

  // MARK: What stays with its name

  /// Looks at some again, each user's on a thread of that user's; it takes a second at most.
  fileprivate func look(
    at ids: [Int64], on occasion: GrantLooks.Occasion = GrantLooks.Occasion(), waiting: Bool = true
  ) {
    if ids.isEmpty { return }
    grants.looks.look(at: grants.users(ofEach: ids), on: occasion, waiting: waiting) { [self] in
      refresh($0, on: $1)
    }
  }

  /// Looks again at what is on the way to grants.
  private func refresh(_ ids: [Int64], on occasion: GrantLooks.Occasion) {
    // The index of spellings may not know it yet.
    if settings.ignoresCase, let step = occasion.step { respell(step) }
    let began = grants.time
    var walk = PathWalk(self)
    for id in ids {
      guard let entry = grants.entry(id) else { continue }
      var isThere = refresh(entry, walk.resolve(entry.record.path, for: entry.record.user), since: began)
      for _ in 1..<Self.mostLooks where isThere == nil {
        let began = grants.time
        guard let entry = grants.entry(id) else { break }
        let resolved = resolvedPath(along: entry.record.path, for: entry.record.user)
        isThere = refresh(entry, resolved, since: began)
      }
      guard let step = occasion.step, let entry = grants.entry(id), let previousName = entry.previousName
      else { continue }
      // An app renamed its granted file and wrote a new one under the old name; or an editor has renamed the
      // file, written a new one under the name, and removed the old one: the grant is for the new one.
      let isAnew =
        previousName.step == step && previousName.isByHolder && occasion.mover == entry.holder
      if isAnew || occasion.isUpdate && isThere == false { restorePreviousName(id) }
    }
  }

  /// Whether something is there; nil if it is to be looked at once more.
  private func refresh(_ known: Grants.Entry, _ resolved: ResolvedPath, since began: UInt64) -> Bool? {
    let others = zip(resolved.steps, known.record.path).filter { $0.name != $1 }.map(\.0)
    if !others.isEmpty {
      for step in others { respell(step) }
      return nil
    }
    var entry = known
    entry.steps = resolved.steps
    entry.note(resolved)
    let (new, identity) = (entry, known.record.identity)
    let outcome = grants.moving.withLock(of: entry.record.user) {
      grants.put(new, insteadOf: known, seen: resolved.steps, since: began)
    }
    if outcome == .changed { return nil }
    if outcome == .done, new.record.identity != identity { grants.report([new.record.id]) }
    return resolved.isThere
  }

  /// Gives grants, and their places in scopes, the spelling that a name on their paths has by now.
  private func respell(_ step: ResolvedPath.Step) {
    var hold = grants.moving.hold([])
    hold.widen { grants.users(at: [step]) }
    if let respelled = grants.respell(step) { _ = apply(respelled) }
    hold.end()
  }

  /// Makes a grant refer to its previous name again, if a file has that.
  private func restorePreviousName(_ id: Int64) {
    for _ in 1...Self.mostLooks {
      let began = grants.time
      guard let old = grants.entry(id), let previousName = old.previousName else { return }
      let resolved = resolvedPath(along: previousName.path, for: old.record.user)
      guard let found = resolved.found, found.status.isRegular else { return }
      let path = resolved.spelled(previousName.path)
      let outcome = grants.moving.withLock(of: old.record.user) { () -> Grants.Outcome in
        var new = old
        new.previousName = nil
        // What the user has granted under that name since then stands, with the access that it has.
        guard grants.record(of: old.holder, at: path) == nil else {
          return grants.put(new, insteadOf: old, seen: [], since: began)
        }
        new.record.path = path
        new.steps = resolved.steps
        new.record.identity = found.identity
        let outcome = grants.put(new, insteadOf: old, seen: resolved.steps, since: began)
        guard outcome == .done else { return outcome }
        let move = ScopeMove(old: old.record.path, new: new.record.path)
        for view in grants.views(of: new.holder) { view.granted.follow([move]) }
        grants.report([id])
        return outcome
      }
      if outcome != .changed { return }
    }
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
