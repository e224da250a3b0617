// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Removing and moving names.

extension View {
  package func remove(
    _ name: Name, in parent: NodeID, directory isDirectory: Bool, by caller: Caller
  ) throws(Errno) {
    let directory = try nodes.pin(parent)
    let freed = try volume.names.alone(in: directory.number) { () throws(Errno) -> OwnedFD? in
      let place = object(try directory.fd.status(), directory)
      let doomed = try find(name, in: directory, place, by: caller)
      try refuseAboveSealed(doomed.status, doomed.object.zone)
      try authorize(.delete, on: doomed.object, in: place, by: caller)
      holdIfLastName(doomed, name, in: directory, by: caller)
      let freed = openIfLarge(doomed, name, in: directory)
      try directory.fd.remove(name, directory: isDirectory)
      noteRemoved(doomed.number, name, in: directory)
      noteForGrants(name, in: directory)
      namesChanged(in: directory.number)
      others.attributesChanged(of: doomed.number)
      return freed
    }
    if let freed { giveBackRoom(of: freed, by: caller) }
  }

  package func rename(
    _ name: Name, in parent: NodeID, to newName: Name, in newParent: NodeID, flags: UInt32, by caller: Caller
  ) throws(Errno) {
    guard [0, Self.noReplace, Self.exchange].contains(flags) else { throw .EINVAL }
    let from = try nodes.pin(parent)
    let to = try nodes.pin(newParent)
    let freed = try volume.names.alone(in: from.number, to.number) { () throws(Errno) in
      try rename(name, in: from, to: newName, in: to, flags, by: caller)
    }
    if let freed { giveBackRoom(of: freed, by: caller) }
  }

  /// Closes a large file that has lost its name, before the answer; unless its user has something slow under
  /// way: then it is closed when it is their turn, and nobody waits.
  private func giveBackRoom(of file: consuming OwnedFD, by caller: Caller) {
    let payer = payer(caller)
    let budget = volume.budget
    if volume.slow.begin(payer.user) {
      defer { volume.slow.end(payer.user) }
      try? file.close()
    } else if budget.takeQuietly(.descriptors, by: payer) {
      let file = file.release()
      volume.slow.add(payer.user, UInt64(number)) {
        try? OwnedFD(owning: file.raw).close()
        budget.give(.descriptors, by: payer)
      }
    }
  }

  private static var noReplace: UInt32 { UInt32(CLX_RENAME_NOREPLACE) }
  private static var exchange: UInt32 { UInt32(CLX_RENAME_EXCHANGE) }

  /// Gives what is to be closed when nobody waits for the directories any more.
  private func rename(
    _ name: Name, in from: borrowing NodeTable.Pin, to newName: Name, in to: borrowing NodeTable.Pin,
    _ flags: UInt32, by caller: Caller
  ) throws(Errno) -> OwnedFD? {
    let isExchange = flags == Self.exchange
    let source = object(try from.fd.status(), from)
    let target = from.id == to.id ? source : object(try to.fd.status(), to)
    try refuseAcross(from, source, to, target)
    let moved = try find(name, in: from, source, by: caller)
    try refuseAboveSealed(moved.status, moved.object.zone)
    try authorize(.delete, on: moved.object, in: source, by: caller)
    try authorize(.search, on: target, by: caller)
    try refuseReservedName(newName, in: to)
    try refuseMoving(moved, to: newName, in: to)
    try authorize(moved.addition, on: target, by: caller)
    let sibling = try authorizeName(newName, giving: moved.sibling, called: name, in: from, source)
    var replaced: Doomed?
    do throws(Errno) {
      replaced = try find(newName, in: to, target, by: caller)
    } catch .ENOENT {
      // Nothing is in the way. If it should be there (exchange), the backing filesystem says so.
    }
    if let replaced {
      try refuseAboveSealed(replaced.status, replaced.object.zone)
      try authorize(.delete, on: replaced.object, in: target, by: caller)
      if isExchange {
        try refuseMoving(replaced, to: name, in: from)
        try authorize(replaced.addition, on: source, by: caller)
      }
    }
    let otherSibling =
      isExchange
      ? try authorizeName(name, giving: replaced?.sibling, called: newName, in: from, source) : nil
    if from.id != to.id {
      try authorizeNewParent(of: moved, zone(of: newName, in: to), by: caller)
      if let replaced, isExchange {
        try authorizeNewParent(of: replaced, zone(of: name, in: from), by: caller)
      }
    }
    var freed: OwnedFD?
    if let replaced, flags == 0 {
      holdIfLastName(replaced, newName, in: to, by: caller)
      freed = openIfLarge(replaced, newName, in: to)
    }
    let fromFD = from.fd
    let toFD = to.fd
    // What the view does not have is not in its way, and is not to be lost.
    let isUnseen = replaced == nil && scope.position(of: newName, in: to.position) == .nowhere
    if isUnseen, isExchange { throw .ENOENT }
    let move = NameMove(
      name: name, from: fromFD, fromNumber: from.number, newName: newName, to: toFD, toNumber: to.number,
      isExchange: isExchange, moved: moved.number,
      staysWithNames: source.isBesideGranted || from.zone == .containers && to.zone == .containers)
    try following(move) { () throws(Errno) in
      try fromFD.rename(name, to: toFD, newName, flags: isUnseen ? Self.noReplace : flags)
    }
    noteSiblings(
      moved.number, sibling, name, in: from, to: newName, in: to, replaced?.number, otherSibling)
    if from.id != to.id, moved.object.isDirectory || replaced?.object.isDirectory == true {
      volume.mounts.directoryMoved()
    }
    // The kernel takes what it remembers of a name along, into a directory that may not be everyone's.
    withdrawNames(in: from, unlessRememberedIn: to, target)
    if isExchange { withdrawNames(in: to, unlessRememberedIn: from, source) }
    let payer = payer(caller)
    noteMoved(moved, to: newName, in: to, by: payer)
    if let replaced, isExchange { noteMoved(replaced, to: name, in: from, by: payer) }
    namesChanged(in: from.number)
    if from.id != to.id { namesChanged(in: to.number) }
    if let replaced, !isExchange { others.attributesChanged(of: replaced.number) }
    return freed
  }

  /// Withdraws what the kernel knows of a directory's entries if one has gone to a directory in which nothing
  /// is remembered, since that is closed to some, or restless; elsewhere it is noted that something is, so
  /// that who closes that one knows.
  private func withdrawNames(
    in source: borrowing NodeTable.Pin, unlessRememberedIn target: borrowing NodeTable.Pin, _ place: Object
  ) {
    if nameValidity(in: target, place) == 0 { forget(.names, of: source.number) }
  }

  /// A name that is about to go, and what it stands for now.
  private struct Doomed {
    let status: FileStatus
    let object: Object
    /// What it is where only files were granted; nil anywhere else.
    let sibling: SiblingObject?
    var number: ObjectNumber { ObjectNumber(status) }
    /// The right to a directory that lets one add such a thing to it.
    var addition: Rights { object.isDirectory ? .addSubdirectory : .addFile }
  }

  /// What a name stands for.
  ///
  /// Who may not search the directory does not learn that.
  private func find(
    _ name: Name, in directory: borrowing NodeTable.Pin, _ place: Object, by caller: Caller
  ) throws(Errno) -> Doomed {
    try authorize(.search, on: place, by: caller)
    try refuseUnseen(name, in: directory)
    let (status, security) = try look(at: name, in: directory.fd)
    var position = scope.position(of: name, in: directory.position)
    var sibling: SiblingObject?
    if place.isBesideGranted {
      let fd = directory.fd
      let object = try nodes.openWithRoom { () throws(Errno) in try fd.child(name) }
      sibling = SiblingObject(Identity(try object.fd.status(), of: object.fd))
      position = scope.position(of: name, in: directory.position, object: sibling)
    }
    guard position != .nowhere else { throw .ENOENT }
    return Doomed(
      status: status,
      object: object(
        status, zone: zone(of: name, in: directory), reach: scope.reach(of: position), security: security),
      sibling: sibling)
  }

  /// Throws if a directory is a container or leads to some, or would become one: whoever moves it away and
  /// back has changed meanwhile what the rules of its place forbid.
  private func refuseMoving(
    _ moved: Doomed, to name: Name, in parent: borrowing NodeTable.Pin
  ) throws(Errno) {
    guard moved.object.isDirectory else { return }
    if moved.object.zone.keepsItsPlace { throw .EPERM }
    try refuseContainer(name, in: parent)
  }

  /// A directory that gets another parent is changed itself: its `..` is.
  ///
  /// What was delivered may leave and be changed no sooner, so for that the zone counts into which it comes.
  private func authorizeNewParent(of moved: Doomed, _ zone: Zone, by caller: Caller) throws(Errno) {
    guard moved.object.isDirectory else { return }
    let object = moved.object.zone.isDelivery ? moved.object.moved(to: zone) : moved.object
    try authorize(.addSubdirectory, on: object, by: caller)
  }

  /// An object that loses its last name can't be found again once its descriptor is closed; so it is kept
  /// open.
  private func holdIfLastName(
    _ doomed: Doomed, _ name: Name, in directory: borrowing NodeTable.Pin, by caller: Caller
  ) {
    let isLast = doomed.status.isDirectory || doomed.status.st_nlink <= 1
    // Without handles any name may be the one that the object is found by.
    guard isLast || !volume.settings.fileHandles else { return }
    let fd = directory.fd
    let payer = payer(caller)
    nodes.hold(
      doomed.number, losing: name, in: directory.id, isLast: isLast, by: payer
    ) { () throws(Errno) in try fd.child(name) }
    others.hold(doomed.number, losing: name, in: directory, isLast: isLast, by: payer)
  }

  /// A large file, held open: the room that it takes is given back when it is closed, which may take seconds.
  private func openIfLarge(
    _ doomed: Doomed, _ name: Name, in directory: borrowing NodeTable.Pin
  ) -> OwnedFD? {
    let large = 16 << 20
    guard doomed.status.isRegular, doomed.status.st_blocks > large / 512 else { return nil }
    let fd = directory.fd
    return try? nodes.openWithRoom { () throws(Errno) in try fd.child(name) }
  }

  private func noteMoved(
    _ moved: Doomed, to name: Name, in parent: borrowing NodeTable.Pin, by payer: Payer
  ) {
    let zone = zone(of: name, in: parent)
    noteMoved(moved.number, to: name, in: parent.number, parent.fd, zone: zone, by: payer)
    dropAnswersUnderWay(about: moved.number)
    others.moved(moved.number, to: name, in: parent, zone: zone, by: payer)
  }

  /// An object has another name now, whichever view it was given through, in a directory that this one may
  /// not know.
  func noteMoved(
    _ object: ObjectNumber, to name: Name, in parent: ObjectNumber, _ directory: FD, zone: Zone,
    by payer: Payer
  ) {
    var moved: NodeTable.Moved?
    while moved == nil {
      let numbering = scope.numbering
      moved = nodes.moved(
        object, to: name, in: parent, zone: zone,
        position: position(of: name, object, in: parent, directory), isUniform: scope.isUniform
      ) {
        scope.numbering == numbering
      }
    }
    guard let moved else { return }
    if moved.isLost {
      // Until the kernel asks for it by a name of a directory that is known here.
      nodes.hold(
        object, losing: name, in: .root, isLast: true, by: payer
      ) { () throws(Errno) in try directory.child(name) }
    }
    if moved.namesMatter { settleZones(below: name, in: directory, zone) }
  }

  /// Gives what is known below a directory that has come to where names matter (a home, a container) its
  /// zones.
  ///
  /// No deeper than names matter, so it is not far to the end.
  private func settleZones(below name: Name, in parent: FD, _ zone: Zone) {
    guard let directory = try? nodes.openWithRoom({ () throws(Errno) in try parent.openDirectory(name) }),
      let entries = try? directory.fd.entries()
    else {
      return
    }
    for entry in entries {
      let child = zone.zone(of: entry.name)
      guard child != zone.inside else { continue }
      try? entry.name.withName { (name) throws(Errno) in
        let status = try directory.fd.status(of: name)
        nodes.setZone(
          child, of: ObjectNumber(status), withAllBelow: child.inside != zone.inside)
        if child.namesMatter, status.isDirectory { settleZones(below: name, in: directory.fd, child) }
      }
    }
  }
}
