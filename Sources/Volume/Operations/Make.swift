// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Creating objects. Each is created with its owner, and never belongs to anyone else.

extension View {
  package func makeDirectory(
    _ name: Name, in parent: NodeID, mode: FileMode, by caller: Caller
  ) throws(Errno) -> Entry {
    try make(name, in: parent, .directory, mode: mode & 0o7777, by: caller) {
      (directory, name, mode) throws(Errno) in
      try directory.makeDirectory(name, mode: mode)
    }
  }

  package func makeNode(
    _ name: Name, in parent: NodeID, mode: FileMode, device: UInt64, by caller: Caller
  ) throws(Errno) -> Entry {
    let type = mode & S_IFMT
    try gate.authorizeNode(type: type, by: caller)
    let kind: Object.Kind = type == S_IFREG || type == 0 ? .file : .special
    return try make(name, in: parent, kind, mode: mode & 0o7777, by: caller) {
      (directory, name, mode) throws(Errno) in
      try directory.makeNode(name, mode: type | mode, device: device)
    }
  }

  package func makeSymlink(
    _ name: Name, in parent: NodeID, to target: UnsafePointer<CChar>, by caller: Caller
  ) throws(Errno) -> Entry {
    try make(name, in: parent, .symlink, mode: 0o777, by: caller) { (directory, name, _) throws(Errno) in
      try directory.makeSymlink(name, to: target)
    }
  }

  package func link(
    _ node: NodeID, as name: Name, in parent: NodeID, by caller: Caller
  ) throws(Errno) -> Entry {
    let object = try nodes.reference(to: node)
    let directory = try nodes.reference(to: parent)
    // Also where the filesystem would do it.
    guard object.volume == directory.volume else { throw .EXDEV }
    let change = try DirectoryChange(in: directory, of: self, for: caller.request)
    let stored = try change.stored(name, addingFor: caller.uid)
    let name = stored.name
    let isThere = change.hasLinked(object.number, as: name)
    try gate.authorizeNewName(.addFile, in: change.from.object, by: caller)
    try gate.refuseReserved(
      name, zone(of: name, in: change.from), ofDirectory: false, in: change.from.object, by: caller)
    let judged = try self.object(try object.fd.status(), object)
    let sibling = try siblings.authorizeName(name, linking: object, judged, in: change.from)
    try gate.authorizeLink(to: judged, by: caller)
    let validity = stored.isOther ? 0 : nameValidity(in: directory, change.from.object)
    let added = NameChange.Added(name: name, linked: object.number, sibling: sibling)
    try change.commit(.added(added)) { () throws(Errno) in
      if !isThere { try object.fd.link(into: directory.fd, as: name) }
    }
    let entry = try change.answer(added) { () throws(Errno) in
      try unchangedEntry(name, in: directory, validity, by: caller)
    }
    // On some volumes each name has an object of its own, and the answer is not about what was linked.
    if entry.node != node { memory.invalidate(.attributes, ofNode: node) }
    return entry
  }

  package func readLink(_ node: NodeID, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let object = try nodes.reference(to: node)
    // It may have been found when the app had it still. In the place of a private directory it says where its
    // user keeps that.
    if gate.isApps { try gate.decisionOnUse(of: node, .read).enforce() }
    if encodesLinks {
      let text = LinkText.encoded(try object.fd.linkTarget())
      guard text.count <= buffer.count else { throw .ENAMETOOLONG }
      buffer.copyBytes(from: text)
      return text.count
    }
    let count = try object.fd.readLink(into: buffer)
    if object.zone.isReadOnlyRegion {
      try seals.checkLink(node, UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
    }
    return count
  }

  /// Asks the gate, makes something by `body` as the caller's, and looks it up.
  ///
  /// `body` gets the directory, the name and the mode to make it with.
  private func make(
    _ name: Name, in parent: NodeID, _ kind: Object.Kind, mode: FileMode, by caller: Caller,
    _ body: (FD, Name, FileMode) throws(Errno) -> Void
  ) throws(Errno) -> Entry {
    let isDirectory = kind == .directory
    let directory = try nodes.reference(to: parent)
    let change = try DirectoryChange(in: directory, of: self, for: caller.request)
    let stored = try change.stored(name, addingFor: caller.uid)
    let name = stored.name
    let (isThere, isWhole) = (change.hasAdded(name), change.isDone)
    let place = change.from.object
    try gate.authorizeNewName(isDirectory ? .addSubdirectory : .addFile, in: place, by: caller)
    let zone = zone(of: name, in: change.from)
    try gate.refuseReserved(name, zone, ofDirectory: isDirectory, in: place, by: caller)
    if isDirectory { try gate.refuseContainer(zone) }
    try siblings.authorizeName(name, kind, in: change.from)
    let validity = stored.isOther ? 0 : nameValidity(in: directory, place)
    let changes = volume.securities.changes
    let new = newObject(kind, in: place, mode: mode, by: caller)
    let added = NameChange.Added(name: name, isDirectory: isDirectory)
    try change.commit(.added(added)) { () throws(Errno) in
      let isOnVolume = directory.isOnVolume
      if !isThere {
        return try makeNew(new, as: name, in: directory.fd, by: caller, isOnVolume: isOnVolume, body)
      }
      if !isWhole { try finish(new, as: name, in: directory.fd, by: caller, isOnVolume: isOnVolume) }
    }
    return try change.answer(added) { () throws(Errno) in
      let object = try nodes.openWithRoom { () throws(Errno) in try directory.fd.child(name) }
      if new.acl == nil { try applyGroup(of: object.fd, new.gid) }
      // gocryptfs makes it open for its owner, closes it, and tells the kernel of the former alone.
      if isDirectory, directory.isOnVolume, new.mode & S_IRWXU != S_IRWXU { object.fd.refreshStatus() }
      return try entry(
        object, name, in: directory, validity, madeAfter: new.acl == nil ? changes : nil, by: caller)
    }
  }

  /// What a new object in a directory is to be like.
  func newObject(
    _ kind: Object.Kind, in place: Object, mode: FileMode, by caller: Caller
  ) -> NewObject {
    let isDirectory = kind == .directory
    let gid = groupOfNew(in: place, by: caller)
    var mode = gate.allowedMode(mode, gid: gid, isDirectory: isDirectory, by: caller)
    // What was granted is its user's to share.
    if gate.isApps, !place.reach.isRevocable { mode &= ~volume.settings.appUmask }
    // As mkdir(2) does it: what is asked for does not count, what the directory has does.
    if isDirectory { mode = mode & ~S_ISGID | place.mode & S_ISGID }
    return NewObject(
      acl: inheritedACL(in: place, to: kind), isDirectory: isDirectory, mode: mode, gid: gid)
  }

  /// Makes it by `body`, the caller's, with the ACL that it inherits.
  func makeNew<Made: ~Copyable>(
    _ new: NewObject, as name: Name, in directory: FD, by caller: Caller, isOnVolume: Bool,
    _ body: (FD, Name, FileMode) throws(Errno) -> Made
  ) throws(Errno) -> Made {
    guard let acl = new.acl else {
      return try makeOwned(name, in: directory, mode: new.mode, gid: new.gid, by: caller, body)
    }
    return try makeWithACL(
      acl, new, as: name, in: directory, by: caller, isOnVolume: isOnVolume
    ) { (directory, name, mode) throws(Errno) in
      try makeOwned(name, in: directory, mode: mode, gid: new.gid, by: caller, body)
    }
  }

  /// Makes something by `body` that belongs to the caller and to `gid`.
  ///
  /// A server that judges by IDs may refuse what the gate has allowed: it knows no ACLs, and with the
  /// directory's group the caller counts as one of that. There it is made for root alone, and given away.
  private func makeOwned<Made: ~Copyable>(
    _ name: Name, in directory: FD, mode: FileMode, gid: UInt32, by caller: Caller,
    _ body: (FD, Name, FileMode) throws(Errno) -> Made
  ) throws(Errno) -> Made {
    guard volume.settings.isRemote, volume.settings.isSystem else {
      return try asOwner(caller, gid: gid) { () throws(Errno) in try body(directory, name, mode) }
    }
    var isGivenAway = false
    let made: Made
    do throws(Errno) {
      made = try asOwner(caller, gid: gid) { () throws(Errno) in try body(directory, name, mode) }
    } catch {
      guard error == .EACCES else { throw error }
      made = try body(directory, name, mode & 0o700)
      isGivenAway = true
    }
    do throws(Errno) {
      // Such a server may also leave out what only the owner may set.
      guard isGivenAway || mode & (S_ISUID | S_ISGID | S_ISVTX) != 0 else { return made }
      let object = try nodes.openWithRoom { () throws(Errno) in try directory.child(name) }
      if isGivenAway { try object.fd.changeOwner(uid: caller.uid, gid: gid) }
      if try !object.fd.status().isSymlink { try object.fd.changeMode(mode) }
      return made
    } catch {
      try? directory.remove(name, directory: (try? directory.status(of: name))?.isDirectory == true)
      throw error
    }
  }

  /// The group of a new object: that of its directory, or with `nogrpid` the caller's.
  private func groupOfNew(in directory: Object, by caller: Caller) -> UInt32 {
    // In a set-group-id directory the backing filesystem gives the directory's group under either rule.
    let inherits = !volume.settings.callerGroup || directory.mode & S_ISGID != 0
    return inherits ? directory.gid : caller.gid
  }

  /// Lets what `body` makes belong to the caller and to `gid`.
  @inline(__always)
  func asOwner<Result: ~Copyable>(
    _ caller: Caller, gid: UInt32, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard volume.settings.isSystem else { return try body() }
    return try ThreadIdentity.with(
      uid: caller.uid, gid: gid, lasting: !volume.settings.isRemote, body)
  }

  /// Runs `body` with the caller's IDs, so that only root can use the disk space that is reserved for root.
  @inline(__always)
  func asCaller<Result: ~Copyable>(
    _ caller: Caller, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    // A server would judge the caller by its own rules.
    guard volume.settings.isSystem, !volume.settings.isRemote else { return try body() }
    return try ThreadIdentity.with(uid: caller.uid, gid: caller.gid, lasting: true, body)
  }

  /// Gives a new object its group where the daemon could not make it with that.
  ///
  /// A user's daemon can give a group that the user is in; where it can't, the object keeps the user's own,
  /// as on Linux.
  func applyGroup(of object: FD, _ gid: UInt32) throws(Errno) {
    guard !volume.settings.isSystem else { return }
    let status = try object.status()
    guard status.st_gid != gid else { return }
    // Someone may have found it already.
    defer { attributesChanged(of: ObjectNumber(status)) }
    do throws(Errno) {
      try object.changeOwner(uid: nil, gid: gid)
      if status.st_mode & (S_ISUID | S_ISGID) != 0, status.isRegular {
        try object.changeMode(status.permissions)
      }
    } catch {
      // A server says EACCES.
      if error != .EPERM, error != .EACCES { throw error }
    }
  }
}
