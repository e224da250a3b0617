// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy
internal import Store

// Making files and opening them in one step.

extension View {
  package func create(
    _ name: Name, in parent: NodeID, flags: Int32, mode: FileMode, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    let directory = try nodes.reference(to: parent)
    releaseUnanswered(caller.request)
    let change = try DirectoryChange(in: directory, of: self, for: caller.request)
    let stored = try change.stored(name, addingFor: caller.uid)
    let name = stored.name
    let (isThere, isWhole) = (change.hasAdded(name), change.isDone)
    let place = change.from.object
    try gate.authorizeNewName(.addFile, in: place, by: caller)
    try gate.refuseReserved(name, zone(of: name, in: change.from), ofDirectory: false, in: place, by: caller)
    try siblings.authorizeName(name, .file, in: change.from)
    let validity = stored.isOther ? 0 : nameValidity(in: directory, place)
    let changes = volume.securities.changes
    let new = newObject(.file, in: place, mode: mode & 0o7777, by: caller)
    let added = NameChange.Added(name: name)
    let file: OwnedFD
    do throws(Errno) {
      file = try change.commit(.added(added)) { () throws(Errno) in
        if isThere {
          if !isWhole {
            try finish(
              new, as: name, in: directory.fd, by: caller, isOnVolume: directory.isOnVolume)
          }
          return try openAgain(
            name, in: directory.fd, creationFlags(flags, in: directory.number) | O_NONBLOCK, by: caller)
        }
        return try makeNew(
          new, as: name, in: directory.fd, by: caller, isOnVolume: directory.isOnVolume
        ) { (fd, name, mode) throws(Errno) in
          try nodes.openWithRoom { () throws(Errno) in
            try fd.open(name, O_CREAT | O_EXCL | self.creationFlags(flags, in: directory.number), mode: mode)
          }
        }
      }
    } catch .EEXIST where flags & O_EXCL == 0 {
      let entry = try entryThere(name, in: directory, validity, by: caller)
      change.end()
      return (entry, try openFound(entry, flags: flags, by: caller))
    }
    var made: OwnedFD? = file
    return try change.answer(added) { () throws(Errno) in
      guard let file = made.take() else { throw .EIO }
      if new.acl == nil { try applyGroup(of: file.fd, new.gid) }
      return try openMade(
        file, name, in: directory, validity, madeAfter: new.acl == nil ? changes : nil, flags, by: caller)
    }
  }

  /// Opens what another worker has made for this very request.
  ///
  /// Who makes a file may open it whatever its mode.
  private func openAgain(
    _ name: Name, in directory: FD, _ flags: Int32, by caller: Caller
  ) throws(Errno) -> OwnedFD {
    do throws(Errno) {
      return try directory.open(name, flags)
    } catch .EACCES {
      let object = try directory.child(name)
      let status = try object.fd.status()
      guard status.st_uid == caller.uid, status.st_nlink == 1 else { throw .ESTALE }
      let mode = status.permissions
      try object.fd.changeMode(mode | 0o600)
      defer { try? object.fd.changeMode(mode) }
      return try object.fd.reopened(flags)
    }
  }

  /// What somebody else has made of that name meanwhile.
  private func entryThere(
    _ name: Name, in directory: borrowing NodeTable.Reference, _ validity: Double, by caller: Caller
  ) throws(Errno) -> Entry {
    do throws(Errno) {
      return try unchangedEntry(name, in: directory, validity, by: caller)
    } catch .ENOENT where directory.position.throughout == nil {
      try decideHiddenName(exists: true).enforce()
      throw .ENOENT
    }
  }

  /// Lets the kernel know what was just made, and opens it.
  private func openMade(
    _ file: consuming OwnedFD, _ name: Name, in directory: borrowing NodeTable.Reference, _ validity: Double,
    madeAfter: UInt64?, _ flags: Int32, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    let isMapped = OpenFile.Access(flags).allowsSharedMaps
    if usesPassthrough(on: directory.number) {
      return try open(
        made: try entry(
          file, name, in: directory, validity, isMapped: isMapped, madeAfter: madeAfter, by: caller),
        nil, flags, by: caller)
    }
    let fd = file.fd
    let object = try nodes.openWithRoom { () throws(Errno) in try fd.reopened(pathOnly) }
    return try open(
      made: try entry(
        object, name, in: directory, validity, isMapped: isMapped, madeAfter: madeAfter, by: caller),
      file, flags, by: caller)
  }

  package func createUnnamed(
    in parent: NodeID, flags: Int32, mode: FileMode, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    releaseUnanswered(caller.request)
    let directory = try nodes.reference(to: parent)
    let place = try object(try directory.fd.status(), directory)
    try gate.authorizeNewName(.addFile, in: place, by: caller)
    let zone = directory.zone.zone(of: Name.empty)
    try gate.refuseReserved(Name.empty, zone, ofDirectory: false, in: place, by: caller)
    let new = newObject(.file, in: place, mode: mode & 0o7777, by: caller)
    let parentFD = directory.fd
    let file = try asOwner(caller, gid: new.gid) { () throws(Errno) in
      // O_EXCL says that it will never get a name; the backing filesystem is the one that must know.
      try nodes.openWithRoom { () throws(Errno) in
        try parentFD.openUnnamed(O_RDWR | flags & O_EXCL, mode: new.mode)
      }
    }
    try applyGroup(of: file.fd, new.gid)
    // Nobody else can find it, so it is early enough.
    if let acl = new.acl { try volume.metadata.setACL(acl, on: file.fd) }
    let object = try file.fd.reopened(pathOnly)
    let fileStatus = try object.fd.status()
    let node = try nodes.intern(
      object, fileStatus, named: Name.empty, in: directory, zone: zone,
      position: scope.position(of: Name.empty, in: directory.position))
    nodes.hold(
      ObjectNumber(fileStatus), losing: Name.empty, in: parent, isLast: true, by: payer(caller)
    ) { () throws(Errno) in throw .ESTALE }
    return try open(
      made: Entry(
        node: node,
        attributes: Attributes(
          volume.shown(fileStatus, in: zone, isOnVolume: directory.isOnVolume, to: caller), validity: 0),
        validity: 0),
      file, flags,
      by: caller
    )
  }

  /// Another client was faster: what it made is opened, if this caller may.
  private func openFound(_ entry: Entry, flags: Int32, by caller: Caller) throws(Errno) -> Opened {
    guard let node = entry.node else { throw .EIO }
    do throws(Errno) {
      return try openNow(node, flags & ~O_CREAT, clearsSetID: false, isNamed: false, by: caller)
    } catch {
      nodes.forget(node, count: 1)
      throw error
    }
  }

  /// Opens what was just made; who makes a file may open it in any way, whatever its mode.
  private func open(
    made entry: Entry, _ file: consuming OwnedFD?, _ flags: Int32, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    guard let node = entry.node else { throw .EIO }
    do throws(Errno) {
      let object = try nodes.reference(to: node, isNamed: false)
      let isRevocable = try isRevocable(scope.reach(of: object.position))
      // What has neither ACL nor flags, as nearly all that is made, need not be looked at.
      var mayAppendAlone = false
      if object.security != .none {
        mayAppendAlone = try mayGrantAppendAlone(self.object(try object.fd.status(), object))
      }
      let plan = OpenPlan(
        access: OpenFile.Access(flags), flags: flags, truncates: false, clearsSetID: false,
        mayAppendAlone: mayAppendAlone, isRevocable: isRevocable, sealed: nil)
      return (entry, try carryOut(plan, on: object, created: file, by: caller))
    } catch {
      nodes.forget(node, count: 1)
      throw error
    }
  }

  /// How to make a file that a client makes and opens: as the client asks where its data will go through this
  /// descriptor; with passthrough only to have it named, since a descriptor that can write would count as a
  /// writer.
  private func creationFlags(_ flags: Int32, in directory: ObjectNumber) -> Int32 {
    if usesPassthrough(on: directory) { return O_RDONLY }
    return OpenFile.Access(flags).openFlags | flags & OpenPlan.flagsForDaemon
  }
}
