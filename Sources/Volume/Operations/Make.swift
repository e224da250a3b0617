// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Making objects. Each is made with its owner: there is no moment in which it belongs to someone else.

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
    if type == S_IFCHR || type == S_IFBLK {
      // Nobody can open one here, since the mount has no devices; but whoever gets at the store could.
      guard volume.settings.isSystem, scope.root == .whole, caller.uid == 0 else { throw .EPERM }
    } else {
      guard type == S_IFREG || type == S_IFIFO || type == S_IFSOCK || type == 0 else { throw .EPERM }
    }
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
    let object = try nodes.pin(node)
    let directory = try nodes.pin(parent)
    return try volume.names.alone(in: directory.number) { () throws(Errno) in
      try link(object, as: name, in: directory, by: caller)
    }
  }

  private func link(
    _ object: borrowing NodeTable.Pin, as name: Name, in directory: borrowing NodeTable.Pin, by caller: Caller
  ) throws(Errno) -> Entry {
    let place = self.object(try directory.fd.status(), directory)
    try authorizeNewName(.addFile, in: place, by: caller)
    try refuseReservedName(name, in: directory)
    let judged = self.object(try object.fd.status(), object)
    let sibling = try authorizeName(name, linking: object, judged, in: directory, place)
    try authorizeLink(to: judged, by: caller)
    let validity = nameValidity(in: directory, place)
    try object.fd.link(into: directory.fd, as: name)
    if let sibling { note(sibling, as: name, in: directory.position) }
    noteForGrants(name, in: directory)
    namesChanged(in: directory.number)
    others.attributesChanged(of: object.number)
    do throws(Errno) {
      return try unchangedEntry(name, in: directory, validity, by: caller)
    } catch {
      takeBack(name, in: directory, isDirectory: false)
      attributesChanged(of: object.number)
      throw error
    }
  }

  package func readLink(_ node: NodeID, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let object = try nodes.pin(node)
    let count = try object.fd.readLink(into: buffer)
    if object.zone.isSealedPlace {
      try checkLink(node, UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[..<count]))
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
    let directory = try nodes.pin(parent)
    return try volume.names.alone(in: directory.number) { () throws(Errno) in
      try make(name, in: directory, kind, mode: mode, by: caller, body)
    }
  }

  private func make(
    _ name: Name, in directory: borrowing NodeTable.Pin, _ kind: Object.Kind, mode: FileMode,
    by caller: Caller, _ body: (FD, Name, FileMode) throws(Errno) -> Void
  ) throws(Errno) -> Entry {
    let isDirectory = kind == .directory
    let place = object(try directory.fd.status(), directory)
    try authorizeNewName(isDirectory ? .addSubdirectory : .addFile, in: place, by: caller)
    try refuseReservedName(name, in: directory)
    if kind == .directory { try refuseContainer(name, in: directory) }
    try authorizeName(name, kind, in: directory, place)
    let validity = nameValidity(in: directory, place)
    let changes = volume.securities.changes
    let new = newObject(kind, in: place, mode: mode, by: caller)
    let fd = directory.fd
    try makeNew(new, as: name, in: fd, by: caller, body)
    noteForGrants(name, in: directory)
    namesChanged(in: directory.number)
    do throws(Errno) {
      let object = try nodes.openWithRoom { () throws(Errno) in try fd.child(name) }
      noteMade(object.fd, as: name, in: directory)
      if new.list == nil { try settleGroup(of: object.fd, new.gid) }
      return try entry(
        object, name, in: directory, validity, madeAfter: new.list == nil ? changes : nil, by: caller)
    } catch {
      takeBack(name, in: directory, isDirectory: isDirectory)
      throw error
    }
  }

  /// What a new object in a directory is to be like.
  func newObject(
    _ kind: Object.Kind, in place: Object, mode: FileMode, by caller: Caller
  ) -> NewObject {
    let isDirectory = kind == .directory
    let gid = groupOfNew(in: place, by: caller)
    var mode = allowedMode(mode, gid: gid, isDirectory: isDirectory, by: caller)
    // As mkdir(2) does it: what is asked for does not count, what the directory has does.
    if isDirectory { mode = mode & ~S_ISGID | place.mode & S_ISGID }
    return NewObject(
      list: inheritedList(in: place, to: kind), isDirectory: isDirectory, mode: mode, gid: gid)
  }

  /// Makes it by `body`, the caller's, with the list that it inherits.
  func makeNew<Made: ~Copyable>(
    _ new: NewObject, as name: Name, in directory: FD, by caller: Caller,
    _ body: (FD, Name, FileMode) throws(Errno) -> Made
  ) throws(Errno) -> Made {
    guard let list = new.list else {
      return try asOwner(caller, gid: new.gid) { () throws(Errno) in try body(directory, name, new.mode) }
    }
    return try makeWithList(list, new, as: name, in: directory) { (directory, name, mode) throws(Errno) in
      try asOwner(caller, gid: new.gid) { () throws(Errno) in try body(directory, name, mode) }
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

  /// Does something for which the room on the disk is the caller's: what is kept for root is for root alone.
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
  func settleGroup(of object: FD, _ gid: UInt32) throws(Errno) {
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
    } catch .EPERM {
      return
    }
  }
}
