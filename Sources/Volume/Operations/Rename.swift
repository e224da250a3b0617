// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
package import LinuxIO
internal import Policy

// Renaming, and exchanging two names.

extension View {
  package func rename(
    _ name: Name, in parent: NodeID, to newName: Name, in newParent: NodeID, flags: UInt32, by caller: Caller
  ) throws(Errno) {
    volume.spellings?.retries.end(caller.pid)
    guard [0, Self.noReplace, Self.exchange].contains(flags) else { throw .EINVAL }
    let from = try nodes.reference(to: parent)
    let to = try nodes.reference(to: newParent)
    let change = try DirectoryChange(from: from, to: to, of: self, for: caller.request)
    if change.isDone { return }
    let source = try change.stored(name)
    let target = try change.stored(newName, in: change.to, addingFor: caller.uid)
    if change.hasRenamed(name, to: newName) {
      return try finish(name, to: newName, flags, change, by: caller)
    }
    let isOther = source.isOther || target.isOther
    let done: Renamed
    if isOther {
      done = try renameInOtherSpelling(
        source, in: from, to: target, called: newName, in: to, flags, change, by: caller)
    } else {
      done = try carryOut(source.name, in: from, to: target.name, in: to, flags, change, by: caller)
    }
    change.end()
    if done.isToBeRespelled { respell(done.moved, target.name, as: newName, in: to, by: caller) }
    if let freed = done.freed { giveBackRoom(of: freed, by: caller) }
  }

  /// What a rename has done.
  struct Renamed: ~Copyable {
    let moved: ObjectNumber
    var replaced: ObjectNumber?
    /// What was replaced, held open if it is large.
    var freed: OwnedFD?
    /// Whether it has the spelling of what it has replaced, and not the one that was asked for.
    var isToBeRespelled = false
  }

  /// Makes the call, if the caller may.
  ///
  /// `isKept` is false if the names that the kernel has then are not those that are stored.
  func carryOut(
    _ name: Name, in from: borrowing NodeTable.Reference, to newName: Name,
    in to: borrowing NodeTable.Reference, _ flags: UInt32, _ change: borrowing DirectoryChange,
    isKept: Bool = true, by caller: Caller
  ) throws(Errno) -> Renamed {
    var move = try judge(name, to: newName, flags, in: change, by: caller)
    // It is noted before the call that the kernel will cache the name where it goes.
    move.remembersNamesInTarget = nameValidity(in: to, change.to.object) > 0 && isKept
    if move.isExchange {
      move.remembersNamesInSource = nameValidity(in: from, change.from.object) > 0 && isKept
    } else if !move.remembersNamesInTarget, isKept, volume.spellings == nil {
      move.isNameWithdrawn = try withdrawsName(of: move, for: caller)
    }
    let freed = move.replaced.flatMap { openIfLarge($0, newName, in: change.to) }
    // What the view does not have is not in its way, and is not to be lost.
    let isUnseen =
      move.replaced == nil && !move.isExchange
      && scope.position(of: newName, in: change.to.position) == .nowhere
    let (source, target) = (from.fd, to.fd)
    let mayLink = volume.attached.queue(ofDevice: from.number.device) == nil
    try change.commit(.renamed(move)) { () throws(Errno) in
      try source.rename(
        name, to: target, newName, flags: isUnseen ? Self.noReplace : flags, mayLink: mayLink)
    }
    return Renamed(moved: move.moved.number, replaced: move.replaced?.number, freed: freed)
  }

  static var noReplace: UInt32 { UInt32(CLX_RENAME_NOREPLACE) }
  static var exchange: UInt32 { UInt32(CLX_RENAME_EXCHANGE) }

  /// Whether the kernel has cached nothing of a name that it would take along to a directory in which names
  /// are not cached.
  ///
  /// ESTALE if it is to begin again (`MovingNames`).
  private func withdrawsName(of move: NameMove, for caller: Caller) throws(Errno) -> Bool {
    // Where names stay in their directory they are as they were, and were withdrawn when that closed.
    if move.from.number == move.to.number { return true }
    let areCached = nodes.with(move.from.number) { $1.namesEpoch == kernel.epoch } == true
    guard areCached, !audience.isPrivate, !caller.request.isResent else {
      moving.end(caller.pid)
      return false
    }
    let moved = MovingNames.Move(
      directory: move.from.number, name: Array(move.name.buffer),
      newDirectory: move.to.number, newName: Array(move.newName.buffer))
    let answer = moving.answer(
      moved, of: move.moved.number, by: caller.pid, of: caller.uid, call: ThreadCall.rename)
    if answer == .again { throw .ESTALE }
    return answer == .withdrawn
  }

  /// Does what follows from a rename that another worker has made for this very request.
  private func finish(
    _ name: Name, to newName: Name, _ flags: UInt32, _ change: borrowing DirectoryChange, by caller: Caller
  ) throws(Errno) {
    let (from, to) = (change.from, change.to)
    let (oldZone, newZone) = (zone(of: name, in: from), zone(of: newName, in: to))
    let moved = try find(newName, in: to, zone: newZone, by: caller)
    let other = flags == Self.exchange ? try find(name, in: from, zone: oldZone, by: caller) : nil
    let move = NameMove(
      name: name, from: from.place, newName: newName, to: to.place,
      moved: NameMove.Moved(moved, zone: newZone, sibling: nil),
      exchanged: other.map { NameMove.Moved($0, zone: oldZone, sibling: nil) },
      staysWithNames: from.object.isBesideGranted || from.zone == .containers && to.zone == .containers,
      payer: payer(caller))
    try change.commit(.renamed(move)) {}
  }

  /// Throws unless the caller may rename `name` to `newName`; gives what will come of it.
  private func judge(
    _ name: Name, to newName: Name, _ flags: UInt32, in change: borrowing DirectoryChange, by caller: Caller
  ) throws(Errno) -> NameMove {
    let (from, to) = (change.from, change.to)
    let isExchange = flags == Self.exchange
    try gate.authorizeCrossing(from, to)
    let moved = try find(name, in: from, by: caller)
    try gate.refuseAboveReadOnlyRegion(moved.status, moved.object.zone)
    try gate.authorize(.delete, on: moved.object, in: from.object, by: caller)
    try gate.authorize(.search, on: to.object, by: caller)
    let newZone = zone(of: newName, in: to)
    try gate.refuseReserved(
      newName, newZone, ofDirectory: moved.object.isDirectory, in: to.object, by: caller)
    try gate.authorizeMove(of: moved.object, to: newZone)
    try gate.authorize(moved.addition, on: to.object, by: caller)
    let sibling = try siblings.authorizeName(newName, giving: moved.sibling, called: name, in: from)
    let other = try findIfThere(
      newName, in: to, zone: newZone, isMissing: change.knowsMissing(newName, by: caller.pid), by: caller)
    if let other {
      try gate.refuseAboveReadOnlyRegion(other.status, other.object.zone)
      try gate.authorize(.delete, on: other.object, in: to.object, by: caller)
    }
    let exchanged = isExchange ? other : nil
    let oldZone = moved.object.zone
    if let exchanged {
      try gate.authorizeMove(of: exchanged.object, to: oldZone)
      try gate.refuseReserved(
        name, oldZone, ofDirectory: exchanged.object.isDirectory, in: from.object, by: caller)
      try gate.authorize(exchanged.addition, on: from.object, by: caller)
    }
    let otherSibling = try siblings.authorizeName(name, giving: exchanged?.sibling, called: newName, in: from)
    if !change.isWithinOneDirectory {
      try gate.authorizeNewParent(of: moved.object, in: newZone, by: caller)
      if let exchanged { try gate.authorizeNewParent(of: exchanged.object, in: oldZone, by: caller) }
    }
    if isExchange, other == nil { throw .ENOENT }
    // A home that is taken away to be removed takes nothing along that was granted in one that was ejected.
    let isHomeTaken = to.zone == .users && newName.buffer.first == UInt8(ascii: ".")
    return NameMove(
      name: name, from: from.place, newName: newName, to: to.place,
      moved: NameMove.Moved(moved, zone: newZone, sibling: sibling),
      exchanged: exchanged.map { NameMove.Moved($0, zone: oldZone, sibling: otherSibling) },
      replaced: flags == 0 ? other : nil,
      staysWithNames: from.object.isBesideGranted || from.zone == .containers && to.zone == .containers
        || isHomeTaken,
      payer: payer(caller))
  }

  /// How many grants below a directory make a rename there a long one: each costs a third of a microsecond.
  private static let longRenameGrants = 512

  package func isLongRename(from parent: NodeID, to newParent: NodeID) -> Bool {
    if volume.grants.isEmpty { return false }
    return [parent, newParent].contains { node in
      nodes.number(of: node).map { volume.grants.count(in: $0) > Self.longRenameGrants } ?? false
    }
  }

  /// What a name stands for; nil if nothing has it.
  private func findIfThere(
    _ name: Name, in directory: DirectoryChange.Directory, zone: Zone, isMissing: Bool, by caller: Caller
  ) throws(Errno) -> NamedObject? {
    do throws(Errno) {
      return try find(name, in: directory, zone: zone, isMissing: isMissing, by: caller)
    } catch .ENOENT {
      return nil
    }
  }

}

extension NameMove.Moved {
  fileprivate init(_ found: NamedObject, zone: Zone, sibling: NewSibling?) {
    number = found.number
    isDirectory = found.object.isDirectory
    self.zone = zone
    self.sibling = sibling
  }
}
