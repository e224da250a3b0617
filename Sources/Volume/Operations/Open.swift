// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy
internal import Store

// Opening files.

extension View {
  package func open(
    _ node: NodeID, flags: Int32, clearsSetID: Bool, by caller: Caller
  ) throws(Errno) -> Opened {
    guard let opened = try open(node, flags, clearsSetID, by: caller, later: nil) else { throw .EIO }
    return opened
  }

  package func open(
    _ node: NodeID, flags: Int32, clearsSetID: Bool, by caller: Caller, later: LateOpen
  ) throws(Errno) -> Opened? {
    try open(node, flags, clearsSetID, by: caller, later: later)
  }

  /// Without `later` there is always an answer.
  ///
  /// `isNamed` says that the kernel has named the node.
  private func open(
    _ node: NodeID, _ flags: Int32, _ clearsSetID: Bool, by caller: Caller, later: LateOpen?,
    isNamed: Bool = true
  ) throws(Errno) -> Opened? {
    if isNamed { settleDoubt(of: node) }
    let object = try nodes.pin(node, isNamed: isNamed)
    let status = try object.fd.status()
    guard status.isRegular else { throw status.isDirectory ? .EISDIR : .ENXIO }
    let judged = self.object(status, object)
    let isRevocable = try isRevocable(judged.reach)
    let access = try authorizeOpen(judged, flags: flags, by: caller)
    if flags & CLX_O_NOATIME != 0, caller.uid != 0, caller.uid != status.st_uid { throw .EPERM }
    if access.writes || flags & O_TRUNC != 0 { others.loseSibling(object.number) }
    if flags & O_TRUNC != 0 {
      // Whoever may not open it does not truncate it.
      try volume.budget.check(.openFiles, by: payer(caller))
      if !usesPassthrough { try volume.budget.check(.descriptors, by: payer(caller)) }
      try object.fd.truncate(to: 0)
      if clearsSetID { try clearSetID(object.fd, by: caller) }
      others.contentsChanged(of: object.number)
    }
    if judged.zone.isSealedPlace,
      case .afterReading = try checkBytes(object, status, mayWait: later != nil), let later
    {
      openLater(node, flags, by: caller, later.keep())
      return nil
    }
    return try opened(
      object.id, object.fd, access, flags, mayAppendAlone: mayGrantAppendAlone(judged),
      isRevocable: isRevocable, isSealed: judged.zone.isSealedPlace, by: caller)
  }

  /// Answers when the file has been read for its seal, which notes what it finds.
  private func openLater(_ node: NodeID, _ flags: Int32, by caller: Caller, _ reply: KeptOpen) {
    readLater(node, for: payer(caller).user) {
      do throws(Errno) {
        reply.send(try self.open(node, flags: flags, clearsSetID: false, by: caller))
      } catch {
        reply.send(error)
      }
    }
  }

  /// Whether a file that is in this reach was granted, so that one who takes it back must know of its opens.
  ///
  /// ENOENT if that has happened since the kernel found its name: nobody would take back what is opened now.
  private func isRevocable(_ reach: Reach) throws(Errno) -> Bool {
    guard reach.contains(.read) else { throw .ENOENT }
    return reach.isRevocable
  }

  /// Throws unless the caller may open the file so; gives the access that they get.
  private func authorizeOpen(_ object: Object, flags: Int32, by caller: Caller) throws(Errno)
    -> OpenFile.Access
  {
    let access = OpenFile.Access(flags)
    var rights = access.rights
    // An execve asks for nothing but this.
    if flags & Self.openForExec != 0 { rights = .execute }
    let appends = flags & (O_APPEND | O_TRUNC) == O_APPEND && rights.contains(.write)
    if appends {
      rights.remove(.write)
      rights.insert(.append)
    }
    if flags & O_TRUNC != 0 { rights.insert(.write) }
    try authorize(rights, on: object, by: caller)
    guard appends, mayGrantAppendAlone(object), denial(of: .write, on: object, to: caller) != nil else {
      return access
    }
    return access.subtracting(.write).union(.append)
  }

  package func create(
    _ name: Name, in parent: NodeID, flags: Int32, mode: FileMode, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    let directory = try nodes.pin(parent)
    let (entry, opened) = try volume.names.alone(in: directory.number) { () throws(Errno) in
      try findOrCreate(name, in: directory, flags: flags, mode: mode, by: caller)
    }
    if let opened { return (entry, opened) }
    return (entry, try openFound(entry, flags: flags, by: caller))
  }

  /// What is made is opened with that; what was there already, if the caller wants that as well, is not yet.
  private func findOrCreate(
    _ name: Name, in directory: borrowing NodeTable.Pin, flags: Int32, mode: FileMode, by caller: Caller
  ) throws(Errno) -> (Entry, Opened?) {
    let place = object(try directory.fd.status(), directory)
    try authorizeNewName(.addFile, in: place, by: caller)
    try refuseReservedName(name, in: directory)
    try authorizeName(name, .file, in: directory, place)
    let validity = nameValidity(in: directory, place)
    let changes = volume.securities.changes
    let new = newObject(.file, in: place, mode: mode & 0o7777, by: caller)
    let file: OwnedFD
    do throws(Errno) {
      file = try makeNew(new, as: name, in: directory.fd, by: caller) { (fd, name, mode) throws(Errno) in
        try nodes.openWithRoom { () throws(Errno) in
          try fd.open(name, O_CREAT | O_EXCL | self.creationFlags(flags), mode: mode)
        }
      }
    } catch .EEXIST where flags & O_EXCL == 0 {
      do throws(Errno) {
        return (try unchangedEntry(name, in: directory, validity, by: caller), nil)
      } catch .ENOENT where directory.position.throughout == nil {
        // What exists outside the view is not the caller's to open.
        throw .EPERM
      }
    }
    noteMade(file.fd, as: name, in: directory)
    noteForGrants(name, in: directory)
    namesChanged(in: directory.number)
    do throws(Errno) {
      if new.list == nil { try settleGroup(of: file.fd, new.gid) }
      return try finishCreation(
        file, name, in: directory, validity, madeAfter: new.list == nil ? changes : nil, flags, by: caller)
    } catch {
      takeBack(name, in: directory, isDirectory: false)
      throw error
    }
  }

  private func finishCreation(
    _ file: consuming OwnedFD, _ name: Name, in directory: borrowing NodeTable.Pin, _ validity: Double,
    madeAfter: UInt64?, _ flags: Int32, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    let isMapped = OpenFile.Access(flags).allowsSharedMaps
    if usesPassthrough {
      return try finishCreation(
        try entry(
          file, name, in: directory, validity, isMapped: isMapped, madeAfter: madeAfter, by: caller),
        nil, flags, by: caller)
    }
    let fd = file.fd
    let object = try nodes.openWithRoom { () throws(Errno) in try fd.reopened(pathOnly) }
    return try finishCreation(
      try entry(
        object, name, in: directory, validity, isMapped: isMapped, madeAfter: madeAfter, by: caller),
      file, flags, by: caller)
  }

  package func createUnnamed(
    in parent: NodeID, flags: Int32, mode: FileMode, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    let directory = try nodes.pin(parent)
    let place = object(try directory.fd.status(), directory)
    try authorizeNewName(.addFile, in: place, by: caller)
    let new = newObject(.file, in: place, mode: mode & 0o7777, by: caller)
    let parentFD = directory.fd
    let file = try asOwner(caller, gid: new.gid) { () throws(Errno) in
      // O_EXCL says that it will never get a name; the backing filesystem is the one that must know.
      try nodes.openWithRoom { () throws(Errno) in
        try parentFD.openUnnamed(O_RDWR | flags & O_EXCL, mode: new.mode)
      }
    }
    try settleGroup(of: file.fd, new.gid)
    // Nobody else can find it, so it is early enough.
    if let list = new.list { try volume.metadata.setList(list, on: file.fd) }
    let object = try file.fd.reopened(pathOnly)
    let fileStatus = try object.fd.status()
    let zone = directory.zone.zone(of: Name.empty)
    let node = try nodes.intern(
      object, fileStatus, named: Name.empty, in: directory, zone: zone,
      position: scope.position(of: Name.empty, in: directory.position))
    nodes.hold(
      ObjectNumber(fileStatus), losing: Name.empty, in: parent, isLast: true, by: payer(caller)
    ) { () throws(Errno) in throw .ESTALE }
    return try finishCreation(
      Entry(node: node, attributes: Attributes(fileStatus, validity: 0), validity: 0), file, flags, by: caller
    )
  }

  /// The kernel's own flag in an open for execve.
  private static var openForExec: Int32 { 0x20 }

  /// Another client was faster: what it made is opened, if this caller may.
  private func openFound(_ entry: Entry, flags: Int32, by caller: Caller) throws(Errno) -> Opened {
    guard let node = entry.node else { throw .EIO }
    do throws(Errno) {
      let opened = try open(node, flags & ~O_CREAT, false, by: caller, later: nil, isNamed: false)
      guard let opened else { throw .EIO }
      return opened
    } catch {
      nodes.forget(node, count: 1)
      throw error
    }
  }

  /// Opens what was just made; who makes a file may open it in any way, whatever its mode.
  private func finishCreation(
    _ entry: Entry, _ file: consuming OwnedFD?, _ flags: Int32, by caller: Caller
  ) throws(Errno) -> (Entry, Opened) {
    guard let node = entry.node else { throw .EIO }
    do throws(Errno) {
      let object = try nodes.pin(node, isNamed: false)
      let isRevocable = try isRevocable(scope.reach(of: object.position))
      // What has neither list nor flags, as nearly all that is made, need not be looked at.
      var mayAppendAlone = false
      if object.security != .none {
        mayAppendAlone = mayGrantAppendAlone(self.object(try object.fd.status(), object))
      }
      let opened = try opened(
        node, object.fd, OpenFile.Access(flags), flags, created: file, mayAppendAlone: mayAppendAlone,
        isRevocable: isRevocable, by: caller)
      return (entry, opened)
    } catch {
      nodes.forget(node, count: 1)
      throw error
    }
  }

  /// Registers one more open of a file, by passthrough if the kernel and the backing filesystem can.
  private func opened(
    _ node: NodeID, _ object: FD, _ access: OpenFile.Access, _ flags: Int32,
    created: consuming OwnedFD? = nil, mayAppendAlone: Bool, isRevocable: Bool, isSealed: Bool = false,
    by caller: Caller
  ) throws(Errno) -> Opened {
    let budget = volume.budget
    let payer = payer(caller)
    try budget.take(.openFiles, by: payer)
    // With passthrough the kernel would let whoever may only append write anywhere, once they have taken
    // O_APPEND back or mapped the file: their writes go through a descriptor of ours that appends whatever
    // they ask for. Nor could it be taken back, so what was granted goes through us as well.
    let isRoot = caller.uid == 0
    let backing = backings.open(node, byRoot: isRoot) {
      mayAppendAlone || isRevocable ? nil : registerBacking(object, for: caller)
    }
    var descriptors = 0
    do throws(Errno) {
      var descriptor: SharedFD?
      let appends = access.contains(.append)
      // Opened before the file got the list or the flag; no map of it can be kept from writing.
      if appends, backing != nil, access.contains(.read) { throw .EBUSY }
      // Opened before it came to where it was granted.
      if isRevocable, backing != nil { throw .EBUSY }
      if isRevocable, access.writes { try refuseSharedMemory(node) }
      // Each view's kernel would have pages of its own, and no map of what it opens past them.
      if backing == nil, isWrittenElsewhere(node) { try refuseSharedMemory(node) }
      // The kernel would write by the limits of whoever opened it first, and there can be but one id.
      let needsOwnLimits = access.writes && backing.map { $0.isRoots != isRoot } ?? false
      if backing == nil || appends || needsOwnLimits {
        try budget.take(.descriptors, by: payer)
        descriptors = 1
        // What was just made is kept as it is: the new mode may not let us open it again.
        if let created {
          descriptor = SharedFD(created)
        } else {
          descriptor = SharedFD(try openForDaemon(object, access, flags, isSealed: isSealed))
        }
      }
      noteOpened(node, access)
      var mode = openMode(node, isPassedThrough: backing != nil)
      // Which has no shared memory maps in the view of the whole tree: see Handshake.
      if appends || needsOwnLimits { mode.insert(.direct) }
      if isRevocable { mode = mode.subtracting(.keepCache).union(.direct) }
      if !needsFlush(access, hasDescriptor: descriptor != nil) { mode.insert(.noFlush) }
      let file = OpenFile(
        node: node, access: access, descriptor: descriptor, isRevocable: isRevocable, caller: caller,
        payer: payer)
      let handle = try isRevocable ? addWhileGranted(file) : files.add(file)
      return Opened(handle: handle, mode: mode, backing: backing?.id ?? 0)
    } catch {
      backings.close(node) { self.connection?.unregisterBacking($0) }
      budget.give(.descriptors, descriptors, by: payer)
      budget.give(.openFiles, by: payer)
      throw error
    }
  }

  /// Where the data of an open goes.
  private func openMode(_ node: NodeID, isPassedThrough: Bool) -> OpenMode {
    if isPassedThrough { return .passthrough }
    let mayKeep = mayKeepContents(of: node)
    // Where other opens go past the page cache, what it has from before may be stale.
    if usesPassthrough { return [] }
    // What another view writes is in no page of this kernel's; and a map that both could write to is not to
    // be had.
    if isWrittenElsewhere(node) { return .direct }
    return mayKeep ? .keepCache : []
  }

  /// Whether a file is open for writing through another view, whose kernel has pages of its own of it.
  private func isWrittenElsewhere(_ node: NodeID) -> Bool {
    guard !usesPassthrough, volume.views.areSeveral, let number = nodes.with(node, { $0.number }) else {
      return false
    }
    return writingElsewhere(of: number) == .open
  }

  /// Whether the kernel is to tell of each close, and wait for the answer, before it releases the file.
  ///
  /// Closing any descriptor of a file drops the process's POSIX locks on it. Programs that depend on the
  /// finer points of that, databases above all, open for reading and writing. For all other opens the release
  /// that follows the last close drops what was locked through them, which saves each of them a round trip;
  /// what differs is in SEMANTICS.md.
  private func needsFlush(_ access: OpenFile.Access, hasDescriptor: Bool) -> Bool {
    // Where data goes through the daemon, close(2) is also where it learns that a write failed.
    if hasDescriptor { return access.writes || !volume.settings.localLocks }
    return access == [.read, .write] && !volume.settings.localLocks
  }

  private func openForDaemon(
    _ object: FD, _ access: OpenFile.Access, _ flags: Int32, isSealed: Bool
  ) throws(Errno) -> OwnedFD {
    let flags = access.openFlags | flags & Self.flagsForDaemon | O_NONBLOCK
    return try nodes.openWithRoom { () throws(Errno) in
      try openForData(object, flags, sparingTime: isSealed)
    }
  }

  /// What a client's flags mean for a descriptor of the daemon's own.
  private static var flagsForDaemon: Int32 { O_APPEND | O_SYNC | O_DSYNC | CLX_O_NOATIME }

  /// How to make a file that a client makes and opens: as the client asks where its data will go through this
  /// descriptor; with passthrough only to have it named, since a descriptor that can write would count as a
  /// writer.
  private func creationFlags(_ flags: Int32) -> Int32 {
    if usesPassthrough { return O_RDONLY }
    return OpenFile.Access(flags).openFlags | flags & Self.flagsForDaemon
  }

  /// What stands for the node in the table of locks.
  func lockedObject(_ node: NodeID) -> ObjectNumber? {
    nodes.with(node) { $0.number }
  }
}

extension OpenFile.Access {
  /// What the access mode of open(2) asks for; its fourth value asks for both rights.
  init(_ flags: Int32) {
    switch flags & O_ACCMODE {
    case O_RDONLY: self = .read
    case O_WRONLY: self = .write
    default: self = [.read, .write]
    }
  }

  /// Whether a memory map through which others see changes can be made from such an open.
  ///
  /// Corresponds to `mmap(2)`.
  var allowsSharedMaps: Bool { self == [.read, .write] }

  var writes: Bool { !isDisjoint(with: [.write, .append]) }

  var openFlags: Int32 {
    let mode = !writes ? O_RDONLY : contains(.read) ? O_RDWR : O_WRONLY
    return contains(.append) ? mode | O_APPEND : mode
  }

  var rights: Rights {
    var rights = Rights.nothing
    if contains(.read) { rights.insert(.read) }
    if contains(.write) { rights.insert(.write) }
    return rights
  }
}
