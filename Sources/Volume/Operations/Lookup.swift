// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Bundles
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy
internal import Store

// Finding objects by name, and forgetting them.

extension View {
  package func lookup(_ name: Name, in parent: NodeID, by caller: Caller) throws(Errno) -> Entry {
    do throws(Errno) {
      if filesTop != nil, let shown = try shownEntry(name, in: parent, by: caller) { return shown }
      return try entryInTree(name, in: parent, by: caller)
    } catch .ESTALE {
      moving.noteStale(caller.pid)
      throw .ESTALE
    }
  }

  /// The same by the names of the tree.
  func entryInTree(_ name: Name, in parent: NodeID, by caller: Caller) throws(Errno) -> Entry {
    let directory = try nodes.reference(to: parent)
    let status = try judgedStatus(of: directory)
    let place = try object(status, directory)
    do throws(Errno) {
      try gate.authorize(.search, on: place, by: caller)
    } catch {
      throw refusals.refusal(error, in: directory, by: caller)
    }
    if directory.zone == .servers { volume.attached.tellOfLook() }
    if directory.zone.mayHoldVolumes, isVolume(name, in: directory) {
      return try entryOfVolume(name, in: directory, by: caller)
    }
    let validity = nameValidity(in: directory, place)
    do throws(Errno) {
      if volume.spellings != nil, !directory.isOnVolume {
        return try entryInAnySpelling(
          name, in: directory, validity, changed: status.st_mtim.nanoseconds, by: caller)
      }
      return try entry(name, in: directory, validity, by: caller)
    } catch .ENOENT {
      // What is left out of a backup is missing on purpose.
      let error = isForBackup ? .ENOENT : seals.absence(of: name, in: directory)
      guard error == .ENOENT else { throw error }
      // Once a mark is taken away, it is to be found.
      guard validity > 0, !isForBackup, namesAreExact(in: directory) else {
        throw .ENOENT
      }
      return .absent(validity: memory.absenceValidity(validity))
    } catch .EMFILE, .ENFILE {
      // The one error at which the kernel keeps a name that it has.
      throw .ENOMEM
    }
  }

  package func forget(_ node: NodeID, count: UInt64) { nodes.forget(node, count: count) }

  /// What a name in a directory stands for, with one lookup counted.
  ///
  /// `validity` is what was said of names there before anyone looked.
  func entry(
    _ name: Name, in directory: borrowing NodeTable.Reference, _ validity: Double, by caller: Caller
  ) throws(Errno) -> Entry {
    let names = volume.names(in: directory.number)
    return try names.shared(in: directory.number) { () throws(Errno) in
      let found = try unchangedEntry(name, in: directory, validity, by: caller) {
        // On a volume that spares a question alone, which would be of the same moment.
        guard directory.isOnVolume || volume.spellings == nil else { return }
        names.remember(
          missing: name, in: directory.number, by: directory.isOnVolume ? caller.pid : 0)
      }
      if directory.isOnVolume { names.forgetMissing(in: directory.number) }
      return found
    }
  }

  /// Whether a name that is missing comes by our doing alone, and by no other spelling.
  private func namesAreExact(in directory: borrowing NodeTable.Reference) -> Bool {
    directory.isOnVolume ? isAlone(directory, exactly: true) : volume.spellings == nil
  }

  /// The same for who sees to it that the name is not changed meanwhile.
  func unchangedEntry(
    _ name: Name, in directory: borrowing NodeTable.Reference, _ validity: Double, by caller: Caller,
    ifMissing: () -> Void = {}
  ) throws(Errno) -> Entry {
    try refuseUnseen(name, in: directory.position)
    let parent = directory.fd
    let object: OwnedFD
    do throws(Errno) {
      if let held {
        object = try heldChild(name, of: directory, held, by: caller.uid)
      } else {
        object = try nodes.openWithRoom { () throws(Errno) in try parent.child(name) }
      }
    } catch {
      // A name that is held may be something else's by now.
      if error == .ENOENT, held == nil { ifMissing() }
      throw error
    }
    return try entry(object, name, in: directory, validity, isFound: true, by: caller)
  }

  /// The entry of an object that was just found or made in a directory, and has its name still.
  ///
  /// `isMapped` says that its maker may map it. `madeAfter` is for what was made without ACL and flags: how
  /// many changes of those there had been before. `isFound` is for what was there already, and `attached` for
  /// the root of a volume.
  func entry(
    _ object: consuming OwnedFD, _ name: Name, in directory: borrowing NodeTable.Reference,
    _ nameValidity: Double,
    isMapped: Bool = false, madeAfter: UInt64? = nil, isFound: Bool = false,
    of attached: AttachedVolume? = nil, by caller: Caller
  ) throws(Errno) -> Entry {
    var object = object
    // The kernel holds the lock of /Volumes meanwhile, so what may not answer is not asked.
    let isInMemory = attached?.engine.queue != nil
    // Of what was just made, the kernel was told with the answer.
    let isTold = isInMemory || madeAfter != nil && isAlone(directory)
    let status = isTold ? try object.fd.statusInMemory() : try object.fd.status()
    if directory.isOnVolume { try volume.attached.check(status, in: directory.number) }
    if directory.zone == .users, attached == nil { try refuseAwayHome(object.fd, status) }
    let zone = attached?.zone ?? zone(of: name, in: directory)
    let position = try position(of: name, in: directory, object.fd, status)
    // Who opens a pipe may wait without end for somebody at its other end. Programs that back up open what
    // was a file when they looked.
    if isForBackup, status.type == S_IFIFO || isLeftOut(name, zone, in: directory.fd) { throw .ENOENT }
    var validity = nameValidity
    var sealed: SealedNode?
    if zone.isReadOnlyRegion {
      sealed = try seals.find(name, object.fd, status, in: directory)
      if !directory.zone.isReadOnlyRegion, !directory.isOnVolume {
        object = try nodes.reopenedNoatime(object)
      }
      // What is broken may be repaired.
      if let sealed, directory.zone.isReadOnlyRegion, sealed.seal.loadedContents == nil,
        sealed.position != .root
      {
        validity = 0
      }
    }
    // Nobody meets anybody in the view for a backup: the kernel has sockets for each mount.
    if !isForBackup, status.type == S_IFIFO || status.type == S_IFSOCK {
      let security = volume.security(of: object.fd, ObjectNumber(status))
      do throws(Errno) {
        try gate.authorizeMeetingPoint(
          Object(status, zone: zone, reach: scope.reach(of: position), security: security),
          isFifo: status.type == S_IFIFO, by: caller)
      } catch {
        guard isFound, error == .EACCES,
          let standIn = standIn(for: name, in: directory, zone: zone, position: position, by: caller)
        else { throw error }
        return standIn
      }
      // Who may use it can change, and it can be moved or linked to anywhere: nobody is let in by a name that
      // was remembered.
      validity = 0
    }
    let node = try nodes.intern(
      object, status, named: name, in: directory, zone: zone, position: position, sealed: sealed,
      volume: attached?.nodeNumber)
    if position == .sibling { siblings.settle(node) }
    if name.endsLikeSharedMemory,
      !usesPassthrough(on: directory.number) || scope.reach(of: position).contains(.revocable)
    {
      _ = nodes.with(node) { $0.flags.insert(.isSharedMemory) }
    }
    if let madeAfter {
      noteSecurity(.none, of: node, readAfter: madeAfter)
    } else if isFound {
      learnSecurity(of: node, by: name, in: directory.fd)
    }
    validity = self.validity(validity, ofNameOf: node)
    if isFound, !audience.isPrivate {
      validity = self.validity(validity, ofFound: name, in: directory.number, node, by: caller)
    }
    // Where names are looked up each time, so are attributes that came with one and are out of date.
    let attributes =
      isMapped || isInMemory
      ? Attributes(
        volume.shown(
          isOnTheWay(node, status) ? status.withoutContents : status, in: zone,
          isOnVolume: attached != nil || directory.isOnVolume, to: caller),
        validity: 0)
      : attributes(status, of: node, for: caller, withName: validity > 0)
    return Entry(node: node, attributes: attributes, validity: validity)
  }

  /// The same for a name that may be about to move to a closed directory (`MovingNames`).
  private func validity(
    _ validity: Double, ofFound name: Name, in directory: ObjectNumber, _ node: NodeID, by caller: Caller
  ) -> Double {
    if moving.covers(name, in: directory, by: caller.pid) { return 0 }
    guard validity > 0 else { return 0 }
    let known = nodes.with(node) { $0.lookups > 1 ? $0.number : nil }
    if let known = known.flatMap(\.self) { moving.noteTold(known, to: caller.pid) }
    return validity
  }

  /// For how long the kernel may cache a name of a directory that is about to be looked for, or made.
  ///
  /// That it will is noted before anyone looks (`KernelMemory.swift`), unless it was noted when the request
  /// began.
  func nameValidity(in directory: borrowing NodeTable.Reference, _ place: Object) -> Double {
    let validity = memory.entryValidity(in: place, directory.number, isOnVolume: directory.isOnVolume)
    guard validity > 0, directory.namesEpoch != kernel.epoch else { return validity }
    // The epoch is read under the table's lock: what someone else has noted is not replaced by an older one.
    _ = nodes.with(directory.id) { $0.namesEpoch = kernel.epoch }
    guard volume.views.areSeveral else { return validity }
    // Who has closed it since it was looked at could not know.
    guard let again = try? nodes.reference(to: directory.id), let status = try? again.fd.status(),
      let place = try? object(status, again)
    else { return 0 }
    return memory.entryValidity(in: place, directory.number, isOnVolume: directory.isOnVolume)
  }
}

extension Name {
  /// What SQLite calls the memory that the users of a write-ahead log share.
  fileprivate var endsLikeSharedMemory: Bool { buffer.suffix(4).elementsEqual("-shm".utf8) }
}

extension Zone {
  /// The zone of a child, without looking at its name where that makes no difference.
  func zone(of name: Name) -> Zone {
    namesMatter ? zone(of: name.buffer) : zone(of: EmptyCollection())
  }
}
