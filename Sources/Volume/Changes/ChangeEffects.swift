// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy

/// The effects of every change of names, whoever makes it.
///
/// These effects happen nowhere else; `make check` enforces that.
///
/// The names are locked meanwhile (`NameLocks`), and the order is:
///
///  1. Before the call: objects that are about to lose a name are held, so that views that know them can
///     still reach them.
///     In a store that ignores case the index of spellings follows right after the call.
///  2. With the call, which is noted before it where it is a rename: grants follow, so that scopes lead to
///     where things are.
///  3. Siblings: which granted file an object beside it belongs to. That depends on the grants.
///  4. Nodes of all views get new parents, positions and zones, which depend on the scopes.
///  5. Kernels drop what they have cached. They may look up again at once, and must find the new state.
struct ChangeEffects {
  let volume: Volume
  /// Through which view the change is made; nil if the daemon makes it itself.
  let view: PeerView?
  let from: ChangedDirectory
  let to: ChangedDirectory

  func apply<Made: ~Copyable>(
    _ change: NameChange, _ call: () throws(Errno) -> Made
  ) throws(Errno) -> Made {
    holdWhatLosesItsName(change)
    let made = try withGrants(change, call)
    let wasMissed = volume.spellings.map { updateSpellings(change, $0) } ?? false
    updateSiblings(change)
    updateNodes(change)
    notifyKernels(change)
    if wasMissed { view?.memory.invalidate(.names, of: to.number) }
    return made
  }

  // MARK: 1. What loses a name

  private func holdWhatLosesItsName(_ change: NameChange) {
    switch change {
    case .removed(let name, let target, let payer):
      hold(target, losing: name, in: from, by: payer)
    case .renamed(let move):
      if let replaced = move.replaced { hold(replaced, losing: move.newName, in: to, by: move.payer) }
    case .added, .rolledBack, .gone, .unknown, .delivered: break
    }
  }

  /// An object without a name can't be reopened once its descriptor is closed, so the descriptor is kept.
  private func hold(
    _ target: NamedObject, losing name: Name, in directory: ChangedDirectory, by payer: Payer
  ) {
    let isLast = target.status.isDirectory || target.status.st_nlink <= 1
    // Without handles any name may be the one that the object is found by.
    guard isLast || !volume.settings.fileHandles else { return }
    forEachView(knowing: target.number) { view in
      let isOurs = view.number == self.view?.number
      let place = isOurs ? directory.node : view.nodes.with(directory.number) { id, _ in id }
      // A view that does not know the directory would not look for the object in it.
      guard isLast || place != nil else { return }
      view.nodes.hold(
        target.number, losing: name, in: place ?? .root, isLast: isLast, by: payer
      ) { () throws(Errno) in try directory.fd.child(name) }
    }
  }

  // MARK: 2. Grants

  private func withGrants<Made: ~Copyable>(
    _ change: NameChange, _ call: () throws(Errno) -> Made
  ) throws(Errno) -> Made {
    guard let view else {
      let made = try call()
      volume.updateGrants(in: from.number)
      if to.number != from.number { volume.updateGrants(in: to.number) }
      return made
    }
    switch change {
    case .renamed(let move):
      return try volume.following(move, through: view, call)
    case .added(let added), .rolledBack(let added):
      let made = try call()
      volume.updateGrants(at: added.name, in: from, through: view)
      return made
    case .removed(let name, _, _), .gone(let name, _):
      let made = try call()
      volume.updateGrants(at: name, in: from, through: view)
      return made
    case .unknown, .delivered:
      return try call()
    }
  }

  /// Whether our own kernel may know another spelling of what was added as missing.
  private func updateSpellings(_ change: NameChange, _ spellings: SpellingIndex) -> Bool {
    switch change {
    case .added(let added): return spellings.note(added: added.name, in: from)
    case .rolledBack(let added): spellings.note(removed: added.name, in: from)
    case .removed(let name, let target, _):
      spellings.note(removed: name, in: from)
      if target.status.isDirectory { spellings.forget(target.number) }
    case .gone(let name, let number):
      spellings.note(removed: name, in: from)
      spellings.forget(number)
    case .renamed(let move):
      if let replaced = move.replaced { spellings.forget(replaced.number) }
      let removed = move.isExchange ? nil : move.name
      if from.number == to.number { return spellings.note(removed: removed, added: move.newName, in: to) }
      spellings.note(removed: removed, in: from)
      return spellings.note(added: move.newName, in: to)
    case .unknown, .delivered:
      spellings.forget(from.number)
      spellings.forget(to.number)
    }
    return false
  }

  // MARK: 3. Siblings

  private func updateSiblings(_ change: NameChange) {
    guard let view else { return }
    switch change {
    case .added(let added):
      if let sibling = added.sibling {
        view.siblings.note(sibling, as: added.name, in: from.position)
      } else if added.linked == nil {
        view.siblings.noteMade(added.name, in: from)
      }
    case .rolledBack(let added): view.siblings.noteUndone(added.name, in: from)
    case .removed(let name, let target, _): view.siblings.noteRemoved(target.number, name, in: from)
    case .gone(let name, let number): view.siblings.noteRemoved(number, name, in: from)
    case .renamed(let move): view.siblings.noteMoved(move)
    case .unknown, .delivered: break
    }
  }

  // MARK: 4. Nodes

  private func updateNodes(_ change: NameChange) {
    switch change {
    case .renamed(let move):
      let isDirectory = move.moved.isDirectory || move.exchanged?.isDirectory == true
      if isDirectory, from.number != to.number { volume.mounts.directoryMoved() }
      updateNode(move.moved, as: move.newName, in: to, by: move.payer)
      if let exchanged = move.exchanged { updateNode(exchanged, as: move.name, in: from, by: move.payer) }
    case .delivered(let object, let isDirectory):
      volume.forEachView { $0.nodes.setZone(.delivered, of: object, withAllBelow: isDirectory) }
    case .added, .rolledBack, .removed, .gone, .unknown: break
    }
  }

  /// An object has another name now, in a directory that a view may not know.
  private func updateNode(
    _ moved: NameMove.Moved, as name: Name, in directory: ChangedDirectory, by payer: Payer
  ) {
    forEachView(knowing: moved.number) { view in
      view.noteMoved(moved.number, to: name, in: directory, zone: moved.zone, by: payer)
    }
  }

  // MARK: 5. Kernels

  private func notifyKernels(_ change: NameChange) {
    switch change {
    case .added(let added):
      if let linked = added.linked {
        forEachOther(knowing: linked) { $0.memory.invalidate(.attributes, of: linked) }
      }
    case .rolledBack(let added):
      if let linked = added.linked { attributesChanged(of: linked) }
    case .removed(_, let target, _): lostName(target)
    case .gone(_, let number):
      forEachOther(knowing: number) {
        $0.memory.invalidate(.attributes, of: number)
        $0.memory.forgetUnused(number)
      }
    case .renamed(let move):
      // The name is now in a directory that may be closed to some users.
      let isWithdrawn = move.remembersNamesInTarget || move.isNameWithdrawn
      if !isWithdrawn { view?.memory.invalidate(.names, of: from.number) }
      if move.isExchange, !move.remembersNamesInSource { view?.memory.invalidate(.names, of: to.number) }
      attributesChanged(of: move.moved.number)
      if let exchanged = move.exchanged { attributesChanged(of: exchanged.number) }
      if let replaced = move.replaced { lostName(replaced) }
    case .delivered(let object, _):
      // All kernels know it by the name that it had, also the one through which its new name is removed.
      volume.forEachView { $0.memory.forgetUnused(object) }
    case .unknown: break
    }
    namesChanged(in: from.number)
    if to.number != from.number { namesChanged(in: to.number) }
  }

  /// Other kernels know an object by a name that it has lost.
  private func lostName(_ target: NamedObject) {
    let isLast = target.status.isDirectory || target.status.st_nlink <= 1
    forEachOther(knowing: target.number) {
      $0.memory.invalidate(.attributes, of: target.number)
      if isLast { $0.memory.forgetUnused(target.number) }
    }
  }

  /// The kernel that made the call drops what the call changes by itself, except answers under way.
  private func namesChanged(in directory: ObjectNumber) {
    view?.memory.dropAnswersUnderWay(about: directory)
    forEachOther(knowing: directory) {
      $0.memory.invalidate([.attributes, .names, .contents], of: directory)
    }
    if view != nil { volume.arrivingFlags.goesOn(directory) }
  }

  private func attributesChanged(of object: ObjectNumber) {
    view?.memory.dropAnswersUnderWay(about: object)
    forEachOther(knowing: object) { $0.memory.invalidate(.attributes, of: object) }
  }

  // MARK: Views

  /// Calls `body` for all views but the one through which the change is made.
  private func forEachOther(knowing object: ObjectNumber, _ body: (PeerView) -> Void) {
    volume.forEachView(knowing: object, besides: view?.number, body)
  }

  private func forEachView(knowing object: ObjectNumber, _ body: (PeerView) -> Void) {
    if let view { body(view) }
    forEachOther(knowing: object, body)
  }
}
