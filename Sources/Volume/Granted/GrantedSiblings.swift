// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import LinuxIO
internal import Policy
internal import Synchronization

// Names where only files were granted; `Scope+Siblings.swift` has the rules.

extension Object {
  /// Whether it is a directory of which only files were granted.
  var isBesideGranted: Bool { reach.contains(.beside) }
}

/// What gets a name beside granted files, and the files to which it then belongs.
struct NewSibling {
  let object: SiblingObject
  let owners: Set<Position>
  /// Whether it is what was granted, and not what an app has made.
  var wasGranted = false
}

/// Names where only files were granted, in one view.
final class GrantedSiblings: Sendable {
  private let gate: Gate
  private let volume: Volume
  private let view: UInt32
  private let scope: ViewScope
  private let nodes: NodeTable
  private let memory: KernelMemory

  init(
    _ volume: Volume, view: UInt32, _ scope: ViewScope, _ nodes: NodeTable, _ memory: KernelMemory,
    _ gate: Gate
  ) {
    self.volume = volume
    self.view = view
    self.scope = scope
    self.nodes = nodes
    self.memory = memory
    self.gate = gate
  }

  // MARK: May it have that name

  /// Throws unless something new may get a name where only files were granted: plain files, by names that
  /// editors use.
  ///
  /// EPERM says nothing about what the user has there.
  func authorizeName(
    _ name: Name, _ kind: Object.Kind, in directory: DirectoryChange.Directory
  ) throws(Errno) {
    guard directory.object.isBesideGranted else { return }
    try decideSiblingKind(kind).enforce(reach: .beside)
    _ = try owners(ofName: name, in: directory, isOneMore: true)
  }

  /// Throws unless an object may get one more name.
  ///
  /// EXDEV where it would keep what can be taken back. Gives what it is beside granted files from then on.
  func authorizeName(
    _ name: Name, linking object: borrowing NodeTable.Reference, _ judged: Object,
    in directory: DirectoryChange.Directory
  ) throws(Errno) -> NewSibling? {
    guard directory.object.isBesideGranted else {
      try gate.authorizeCrossing(
        from: judged.reach, at: object.position, to: directory.object.reach, at: directory.position)
      return nil
    }
    try gate.authorizeCrossing(from: judged.reach, to: directory.object.reach)
    guard let identity = nodes.with(object.id, { $0.identity }) else { throw .ESTALE }
    let found = SiblingObject(identity)
    let position = object.position
    let parent = directory.position
    let owners = try owners(ofName: name, in: directory, isOneMore: true)
    let (own, wasGranted) = scope.ask { scope -> (Set<Position>, Bool) in
      if scope.isGrantedFile(position, in: parent) { return ([position], true) }
      guard let sibling = scope.sibling(found), sibling.directory == parent else { return ([], false) }
      return (sibling.owners, false)
    }
    try decideSiblingOwners(own, of: owners).enforce()
    return NewSibling(object: found, owners: own.intersection(owners), wasGranted: wasGranted)
  }

  /// Throws unless what has one name beside granted files may get another one there, which is one of the
  /// same file.
  func authorizeName(
    _ newName: Name, giving object: SiblingObject?, called name: Name,
    in directory: DirectoryChange.Directory
  ) throws(Errno) -> NewSibling? {
    guard directory.object.isBesideGranted, let object else { return nil }
    let parent = directory.position
    let owners = try owners(ofName: newName, in: directory, isOneMore: false)
    let (own, wasGranted) = scope.ask { scope in
      (
        scope.owners(of: object, named: name.buffer, in: parent),
        scope.hasPlace(name.buffer, in: parent)
      )
    }
    try decideSiblingOwners(own, of: owners).enforce()
    return NewSibling(object: object, owners: own.intersection(owners), wasGranted: wasGranted)
  }

  /// The granted files that a name is for; EPERM if there are none.
  ///
  /// EDQUOT if there are enough siblings, and the name would be one more.
  private func owners(
    ofName name: Name, in directory: DirectoryChange.Directory, isOneMore: Bool
  ) throws(Errno) -> Set<Position> {
    let parent = directory.position
    let (owners, hasRoom) = scope.ask { scope in
      let isGranted = scope.hasPlace(name.buffer, in: parent)
      return (scope.owners(ofName: name.buffer, in: parent), isGranted || scope.hasRoomForSibling)
    }
    try decideSiblingName(for: owners).enforce(reach: .beside)
    if isOneMore, !hasRoom { throw .EDQUOT }
    return owners
  }

  // MARK: What has come of it: called by ChangeEffects alone

  /// Something was made through this view.
  func noteMade(_ name: Name, in directory: ChangedDirectory) {
    guard directory.position.throughout == nil, scope.reach(of: directory.position).contains(.beside),
      let object = try? nodes.openWithRoom({ () throws(Errno) in try directory.fd.child(name) }),
      let status = try? object.fd.status()
    else { return }
    let made = SiblingObject(Identity(status, of: object.fd))
    let parent = directory.position
    scope.change { scope in
      let owners = scope.owners(ofName: name.buffer, in: parent)
      guard !scope.hasPlace(name.buffer, in: parent) else { return }
      scope.addSibling(made, name.buffer, in: parent, of: owners)
    }
  }

  /// An object has one more name beside granted files, or another one than before.
  ///
  /// What somebody else has taken from the app meanwhile does not come back.
  func note(
    _ sibling: NewSibling, as name: Name, insteadOf old: Name? = nil, in directory: Position
  ) {
    scope.change { scope in
      let isStill = sibling.wasGranted || scope.sibling(sibling.object) != nil
      if let old { scope.removeSibling(sibling.object.number, old.buffer, in: directory) }
      guard isStill, !scope.hasPlace(name.buffer, in: directory) else { return }
      scope.addSibling(sibling.object, name.buffer, in: directory, of: sibling.owners)
    }
  }

  /// A name was taken away.
  func noteRemoved(_ object: ObjectNumber, _ name: Name, in directory: ChangedDirectory) {
    if scope.hasSiblings {
      let parent = directory.position
      scope.change { $0.removeSibling(SiblingObject.Number(object), name.buffer, in: parent) }
    }
    peers.loseSibling(object)
  }

  /// What was made by a name was removed again.
  func noteUndone(_ name: Name, in directory: ChangedDirectory) {
    guard scope.hasSiblings else { return }
    let parent = directory.position
    scope.change { $0.removeSiblings(named: name.buffer, in: parent) }
  }

  /// A rename was made, or an exchange.
  func noteMoved(_ move: NameMove) {
    let other = move.exchanged?.number ?? move.replaced?.number
    peers.loseSibling(move.moved.number)
    if let other { peers.loseSibling(other) }
    guard let sibling = move.moved.sibling else { return }
    let parent = move.from.position
    let otherSibling = move.exchanged?.sibling
    if let other, otherSibling == nil {
      scope.change { $0.removeSibling(SiblingObject.Number(other), move.newName.buffer, in: parent) }
    }
    note(sibling, as: move.newName, insteadOf: move.name, in: parent)
    if sibling.wasGranted { shareSibling(sibling, as: move.newName, of: move.name, in: move.from) }
    guard let otherSibling else { return }
    note(otherSibling, as: move.name, insteadOf: move.newName, in: parent)
    if otherSibling.wasGranted { shareSibling(otherSibling, as: move.name, of: move.newName, in: move.from) }
  }

  /// What was granted has been put aside: the other views of its app keep it too.
  private func shareSibling(
    _ sibling: NewSibling, as name: Name, of file: Name, in directory: ChangedDirectory
  ) {
    guard let holder = volume.grants.holder(ofView: view) else { return }
    let number = directory.number
    for peer in volume.grants.views(of: holder) where peer.number != view {
      // In one step, since positions may be numbered again.
      _ = peer.nodes.with(number) { _, parent in
        let parent = parent.position
        peer.scope.change { scope in
          let owners = scope.owners(ofName: file.buffer, in: parent)
          guard scope.hasPlace(file.buffer, in: parent) else { return }
          scope.addSibling(sibling.object, name.buffer, in: parent, of: owners)
        }
      }
    }
  }

  /// An object is not for the app any more, whatever it has open.
  func lose(_ object: ObjectNumber) {
    scope.change { $0.removeSibling(SiblingObject.Number(object)) }
    let directory = nodes.state.withLock { state -> ObjectNumber? in
      guard let index = state.find(object) else { return nil }
      let node = state.slab[index]
      if node.pointee.position == .sibling { node.pointee.position = .nowhere }
      return state.slab.slot(node.pointee.parent)?.pointee.number
    }
    // Its name is in a listing that the kernel may keep.
    if let directory { memory.invalidate([.attributes, .names, .contents], of: directory) }
  }

  /// A node has been given the position of a sibling; someone may have taken that away meanwhile.
  func settle(_ node: NodeID) {
    _ = nodes.with(node) { node in
      let object = SiblingObject(node.identity)
      guard node.position == .sibling, scope.ask({ $0.sibling(object) == nil }) else { return }
      node.position = .nowhere
    }
  }

  private var peers: PeerViews { PeerViews(volume: volume, number: view) }
}
