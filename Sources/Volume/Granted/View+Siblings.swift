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

// MARK: - May it have that name

extension View {
  /// Throws unless something new may get a name where only files were granted: plain files, by names that
  /// editors use.
  ///
  /// EPERM says nothing about what the user has there.
  func authorizeName(
    _ name: Name, _ kind: Object.Kind, in directory: borrowing NodeTable.Pin, _ place: Object
  ) throws(Errno) {
    guard place.isBesideGranted else { return }
    guard kind == .file else { throw .EPERM }
    _ = try owners(ofName: name, in: directory, isOneMore: true)
  }

  /// Throws unless an object may get one more name.
  ///
  /// EXDEV where it would keep what can be taken back. Gives what it is beside granted files from then on.
  func authorizeName(
    _ name: Name, linking object: borrowing NodeTable.Pin, _ judged: Object,
    in directory: borrowing NodeTable.Pin, _ place: Object
  ) throws(Errno) -> NewSibling? {
    guard judged.reach.isRevocable == place.reach.isRevocable else { throw .EXDEV }
    guard place.isBesideGranted else {
      let target = scope.grant(around: directory.position)
      guard scope.grant(around: object.position) == target else { throw .EXDEV }
      return nil
    }
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
    let common = own.intersection(owners)
    guard !common.isEmpty else { throw .EXDEV }
    return NewSibling(object: found, owners: common, wasGranted: wasGranted)
  }

  /// Throws unless what has one name beside granted files may get another one there, which is one of the
  /// same file.
  func authorizeName(
    _ newName: Name, giving object: SiblingObject?, called name: Name,
    in directory: borrowing NodeTable.Pin, _ place: Object
  ) throws(Errno) -> NewSibling? {
    guard place.isBesideGranted, let object else { return nil }
    let parent = directory.position
    let owners = try owners(ofName: newName, in: directory, isOneMore: false)
    let (own, wasGranted) = scope.ask { scope in
      (
        scope.owners(of: object, named: name.buffer, in: parent),
        scope.hasPlace(name.buffer, in: parent)
      )
    }
    let common = own.intersection(owners)
    guard !common.isEmpty else { throw .EXDEV }
    return NewSibling(object: object, owners: common, wasGranted: wasGranted)
  }

  /// The granted files that a name is for; EPERM if there are none.
  ///
  /// EDQUOT if there are enough siblings, and the name would be one more.
  private func owners(
    ofName name: Name, in directory: borrowing NodeTable.Pin, isOneMore: Bool
  ) throws(Errno) -> Set<Position> {
    let parent = directory.position
    let (owners, hasRoom) = scope.ask { scope in
      let isGranted = scope.hasPlace(name.buffer, in: parent)
      return (scope.owners(ofName: name.buffer, in: parent), isGranted || scope.hasRoomForSibling)
    }
    guard !owners.isEmpty else { throw .EPERM }
    if isOneMore, !hasRoom { throw .EDQUOT }
    return owners
  }

  /// What can be taken back is kept apart from what can't, and each grant from the others, as if they lay
  /// on disks of their own: otherwise a rename would be a way to keep it.
  func refuseAcross(
    _ from: borrowing NodeTable.Pin, _ source: Object, _ to: borrowing NodeTable.Pin, _ target: Object
  ) throws(Errno) {
    if from.id == to.id { return }
    guard source.reach.isRevocable == target.reach.isRevocable else { throw .EXDEV }
    guard source.reach.isRevocable else { return }
    guard scope.grant(around: from.position) == scope.grant(around: to.position) else { throw .EXDEV }
  }
}

// MARK: - What has come of it

extension View {
  /// Something was made through this view.
  func noteMade(_ object: FD, as name: Name, in directory: borrowing NodeTable.Pin) {
    guard directory.position.throughout == nil, scope.reach(of: directory.position).contains(.beside),
      let status = try? object.status()
    else { return }
    let made = SiblingObject(Identity(status, of: object))
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
  func noteRemoved(_ object: ObjectNumber, _ name: Name, in directory: borrowing NodeTable.Pin) {
    if scope.hasSiblings {
      let parent = directory.position
      scope.change { $0.removeSibling(SiblingObject.Number(object), name.buffer, in: parent) }
    }
    others.loseSibling(object)
  }

  /// What was made by a name was removed again.
  func noteUndone(_ name: Name, in directory: borrowing NodeTable.Pin) {
    guard scope.hasSiblings else { return }
    let parent = directory.position
    scope.change { $0.removeSiblings(named: name.buffer, in: parent) }
  }

  /// A rename was made: of `moved`, which is `sibling` from now on, if that.
  ///
  /// `replaced` is what had the new name, and has the old one if it is `otherSibling` now.
  func noteSiblings(
    _ moved: ObjectNumber, _ sibling: NewSibling?, _ name: Name, in from: borrowing NodeTable.Pin,
    to newName: Name, in to: borrowing NodeTable.Pin, _ replaced: ObjectNumber?, _ otherSibling: NewSibling?
  ) {
    others.loseSibling(moved)
    if let replaced { others.loseSibling(replaced) }
    guard let sibling else { return }
    let parent = from.position
    if let replaced {
      scope.change { scope in
        guard otherSibling == nil else { return }
        scope.removeSibling(SiblingObject.Number(replaced), newName.buffer, in: parent)
      }
    }
    note(sibling, as: newName, insteadOf: name, in: parent)
    if sibling.wasGranted { shareSibling(sibling, as: newName, of: name, in: from) }
    guard let otherSibling else { return }
    note(otherSibling, as: name, insteadOf: newName, in: parent)
    if otherSibling.wasGranted { shareSibling(otherSibling, as: name, of: newName, in: from) }
  }

  /// What was granted has been put aside: the other views of its app keep it too.
  private func shareSibling(
    _ sibling: NewSibling, as name: Name, of file: Name, in directory: borrowing NodeTable.Pin
  ) {
    guard let holder = volume.grants.holder(of: self) else { return }
    let number = directory.number
    for view in volume.grants.views(of: holder) where view !== self {
      // In one step, since positions may be numbered anew.
      _ = view.nodes.with(number) { _, parent in
        let parent = parent.position
        view.scope.change { scope in
          let owners = scope.owners(ofName: file.buffer, in: parent)
          guard scope.hasPlace(file.buffer, in: parent) else { return }
          scope.addSibling(sibling.object, name.buffer, in: parent, of: owners)
        }
      }
    }
  }

  /// An object is not for the app any more, whatever it has open.
  func loseSibling(_ object: ObjectNumber) {
    scope.change { $0.removeSibling(SiblingObject.Number(object)) }
    let directory = nodes.state.withLock { state -> ObjectNumber? in
      guard let index = state.find(object) else { return nil }
      let node = state.slab[index]
      if node.pointee.position == .sibling { node.pointee.position = .nowhere }
      return state.slab.slot(node.pointee.parent)?.pointee.number
    }
    // Its name is in a listing that the kernel may keep.
    if let directory { forget([.attributes, .names, .contents], of: directory) }
  }

  /// A node has been given the position of a sibling; someone may have taken that away meanwhile.
  func settleSibling(_ node: NodeID) {
    _ = nodes.with(node) { node in
      let object = SiblingObject(node.identity)
      guard node.position == .sibling, scope.ask({ $0.sibling(object) == nil }) else { return }
      node.position = .nowhere
    }
  }
}
