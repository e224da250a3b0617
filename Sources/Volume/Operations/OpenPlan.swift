// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

/// How a file is to be opened: what the gate has allowed, and what follows from that.
///
/// Data goes one of two ways. With passthrough the kernel reads and writes the backing file itself. Else each
/// read and write is a request, and the daemon has a descriptor of its own.
struct OpenPlan {
  let access: OpenFile.Access
  /// Those of `open(2)`.
  let flags: Int32
  /// Whether the file is emptied, and whether set-user-id and set-group-id go with its contents.
  let truncates: Bool
  let clearsSetID: Bool
  /// Whether somebody may have the right to append to the file and nothing else.
  ///
  /// With passthrough the kernel would let them write anywhere, once they have taken O_APPEND back or mapped
  /// the file: they get a descriptor of the daemon's that appends whatever they ask for.
  let mayAppendAlone: Bool
  /// Whether a user has granted the file, and may take it back.
  ///
  /// Nobody can take back what is passed through.
  let isRevocable: Bool
  /// The file as it was judged, if it is in a read-only region and so is held against its seal.
  let sealed: FileStatus?

  var mayPassThrough: Bool { !mayAppendAlone && !isRevocable }
  /// Whether this open may append alone.
  var appends: Bool { access.contains(.append) }
  /// Whether each write is to come as one request: through the page cache the kernel splits it at a page of
  /// where it believes the end to be, and another view's append would get in between.
  var appendsWholeWrites: Bool { flags & O_APPEND != 0 && access == .write }
  /// The flags for a descriptor of the daemon's own.
  var daemonFlags: Int32 { access.openFlags | flags & Self.flagsForDaemon }

  /// What a client's flags mean for a descriptor of the daemon's own.
  ///
  /// `O_APPEND` can come and go by fcntl, so each write request says it.
  static var flagsForDaemon: Int32 { O_SYNC | O_DSYNC | CLX_O_NOATIME }

  /// How the data of an open will go.
  struct Route {
    /// The kernel's own way; nil where it asks the daemon.
    let backing: Backings.Backing?
    /// Whether the daemon takes a descriptor of its own.
    let hasDescriptor: Bool
    /// Whether it goes past the page cache, and no map of it is shared.
    let isDirect: Bool
  }
}

extension View {
  /// Opens a file as planned, by passthrough if the kernel and the backing filesystem can.
  ///
  /// `created` is the descriptor by which it was made just now: the new mode may not let us open it again.
  func carryOut(
    _ plan: OpenPlan, on object: borrowing NodeTable.Reference, created: consuming OwnedFD? = nil,
    by caller: Caller
  ) throws(Errno) -> Opened {
    let node = object.id
    let (fd, number, isOnVolume) = (object.fd, object.number, object.isOnVolume)
    let budget = volume.budget
    let payer = payer(caller)
    // The kernel is not told of these bits there, and so would let them stay.
    if plan.access.writes, isOnVolume { try clearSetID(fd, try judgedStatus(of: object), by: caller) }
    try budget.take(.openFiles, by: payer)
    // Where another view has pages of its own that it may store in, none may be stored in past them.
    let mayPassThrough =
      plan.mayPassThrough
      && !(plan.access.writes && volume.maps.areElsewhere(of: number, besides: self.number))
    let backing = backings.open(node, byRoot: caller.uid == 0) {
      mayPassThrough ? registerBacking(fd, number, isOnVolume: isOnVolume, for: caller) : nil
    }
    var descriptors = 0
    do throws(Errno) {
      let route = try route(plan, backing, number, node, caller)
      // Before the daemon has a descriptor that is held for writing too.
      let before = usedElsewhere(number, node, plan, route)
      var (descriptor, appending): (SharedFD?, SharedFD?)
      var isMade = false
      if route.hasDescriptor {
        let isServedElsewhere = volume.settings.isRemote || isOnVolume
        let leavesEnd = isServedElsewhere && plan.access.contains(.write) && plan.flags & O_APPEND != 0
        try budget.take(.descriptors, leavesEnd ? 2 : 1, by: payer)
        descriptors = leavesEnd ? 2 : 1
        if let created {
          isMade = true
          descriptor = SharedFD(created)
        } else {
          descriptor = SharedFD(try openForDaemon(fd, plan, 0))
        }
        // Both now, as the gate has judged: who serves it may go by its name, which may soon be another's.
        do throws(Errno) {
          if leavesEnd { appending = SharedFD(try openForDaemon(fd, plan, O_APPEND)) }
        } catch {
          // The new mode of what was just made may not let us.
          guard isMade else { throw error }
          budget.give(.descriptors, by: payer)
          descriptors = 1
        }
      }
      // Only now that nothing else refuses: whoever may not open it does not empty it.
      if plan.truncates { try truncate(object, clearsSetID: plan.clearsSetID, by: caller) }
      writers.opened(node, plan.access)
      let maps = writers.mapped(
        number, plan.access, isPassedThrough: route.backing != nil, isDirect: route.isDirect, since: before)
      let file = OpenFile(
        node: node, access: plan.access, descriptor: descriptor, appending: appending,
        isRevocable: plan.isRevocable, caller: caller, payer: payer, backing: route.backing, maps: maps)
      let handle = try add(file)
      let isRead = !isMade && plan.access.contains(.read)
      let mode = openMode(object, plan, route, maps, isRead ? descriptor : nil)
      return Opened(handle: handle, mode: mode, backing: route.backing?.id ?? 0)
    } catch {
      backings.close(node) { self.connection?.unregisterBacking($0) }
      budget.give(.descriptors, descriptors, by: payer)
      budget.give(.openFiles, by: payer)
      throw error
    }
  }

  /// Adds an open file; one that was granted only if that still holds.
  private func add(_ file: OpenFile) throws(Errno) -> HandleID {
    guard file.isRevocable else { return files.add(file) }
    do throws(Errno) {
      return try granted.add(file)
    } catch {
      writers.closed(file.node, file)
      throw error
    }
  }

  /// Decides how the data of an open goes.
  ///
  /// All opens of a file at one time go by passthrough, or none does. EBUSY if it was opened so before it got
  /// the ACL or the flag, or came to where it was granted.
  private func route(
    _ plan: OpenPlan, _ backing: Backings.Backing?, _ number: ObjectNumber, _ node: NodeID, _ caller: Caller
  ) throws(Errno) -> OpenPlan.Route {
    guard let backing else {
      // Each view's kernel has pages of its own then, and no map of what it opens past them. A backup only
      // copies what is there.
      if plan.isRevocable && plan.access.writes || !isForBackup && writers.elsewhere(of: number) == .open {
        try gate.refuseSharedMemory(node)
      }
      let isDirect = plan.appends || plan.isRevocable || plan.appendsWholeWrites
      return OpenPlan.Route(backing: nil, hasDescriptor: true, isDirect: isDirect)
    }
    // No map of it can be kept from writing.
    if plan.appends, plan.access.contains(.read) { throw .EBUSY }
    if plan.isRevocable { throw .EBUSY }
    // The kernel would write by the limits of whoever opened it first, and there can be but one id.
    let needsOwnLimits = plan.access.writes && backing.isRoots != (caller.uid == 0)
    // Maps are shared with others, and fill no memory while the file's lock is held.
    let isLockHolder = volume.settings.lockHolders?.contains(caller.uid) == true
    let isServed = plan.appends || needsOwnLimits || isLockHolder
    return OpenPlan.Route(backing: backing, hasDescriptor: isServed, isDirect: isServed)
  }

  /// What the kernel is told of an open.
  private func openMode(
    _ object: borrowing NodeTable.Reference, _ plan: OpenPlan, _ route: OpenPlan.Route, _ maps: MapUse,
    _ descriptor: SharedFD?
  ) -> OpenMode {
    var mode: OpenMode = route.backing != nil ? .passthrough : cacheMode(object, descriptor)
    // Which has no shared memory maps, but where the connection allows them for granted files: see Handshake.
    let isKeptFromMapping = route.backing == nil && plan.access.allowsSharedMaps && maps != .owned
    if route.isDirect || isKeptFromMapping { mode.insert(.direct) }
    if plan.isRevocable { mode.remove(.keepCache) }
    if !needsFlush(plan.access, hasDescriptor: route.hasDescriptor) { mode.insert(.noFlush) }
    return mode
  }

  /// Whether the page cache serves a file whose data goes through the daemon, and may keep what it has.
  ///
  /// On a volume that is looked up by `descriptor`.
  private func cacheMode(_ object: borrowing NodeTable.Reference, _ descriptor: SharedFD?) -> OpenMode {
    let isUnchanged =
      !object.isOnVolume || isUnchanged(object, by: descriptor.map { FD($0.number) })
    let mayKeep = memory.mayKeepContents(of: object.id) && isUnchanged
    // What another view writes is in no page of this kernel's; and a map that both could write to is not to
    // be had. By this open, whatever others do: also where there is passthrough, some files go without.
    if writers.elsewhere(of: object.number) == .open { return .direct }
    // Where other opens go past the page cache, what it has from before may be stale.
    if usesPassthrough(on: object.number) { return [] }
    return mayKeep ? .keepCache : []
  }

  /// In which way other views may be changing a file that is opened so that it could be mapped; where a map
  /// of the file's own pages may have outlived its descriptor, only if it has.
  private func usedElsewhere(
    _ number: ObjectNumber, _ node: NodeID, _ plan: OpenPlan, _ route: OpenPlan.Route
  ) -> WritingUse {
    guard plan.access.allowsSharedMaps, route.backing == nil else { return .none }
    let use = writers.elsewhere(of: number)
    return use == .perhapsMapped && isHeldForWriting(node) ? .open : use
  }

  /// Whether the kernel is to tell of each close, and wait for the answer, before it releases the file.
  ///
  /// Closing any descriptor of a file drops the process's POSIX locks on it. Programs that depend on the
  /// finer points of that, databases above all, open for reading and writing. For all other opens the release
  /// that follows the last close drops what was locked through them, which saves each of them a round trip;
  /// what differs is in SEMANTICS.md.
  private func needsFlush(_ access: OpenFile.Access, hasDescriptor: Bool) -> Bool {
    // Where data goes through the daemon, close(2) is also where it learns that a write failed.
    if hasDescriptor, access.writes { return true }
    if volume.settings.localLocks { return false }
    return usesPassthrough ? access == [.read, .write] : true
  }

  private func truncate(
    _ object: borrowing NodeTable.Reference, clearsSetID: Bool, by caller: Caller
  ) throws(Errno) {
    try object.fd.truncate(to: 0)
    if clearsSetID { try clearSetID(object.fd, by: caller) }
    peers.contentsChanged(of: object.number)
  }

  private func openForDaemon(_ object: FD, _ plan: OpenPlan, _ flags: Int32) throws(Errno) -> OwnedFD {
    try nodes.openWithRoom { () throws(Errno) in
      try volume.openForData(object, plan.daemonFlags | flags | O_NONBLOCK, sparingTime: plan.sealed != nil)
    }
  }
}
