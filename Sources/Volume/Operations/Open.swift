// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Opening files that are there: find the file, ask the gate, and carry out what that has allowed
// (`OpenPlan.swift`).

extension View {
  package func open(
    _ node: NodeID, flags: Int32, clearsSetID: Bool, by caller: Caller, later: LateOpen
  ) throws(Errno) -> Opened? {
    memory.resolveDoubt(of: node)
    releaseUnanswered(caller.request)
    let object = try nodes.reference(to: node)
    let plan = try planOpen(of: object, flags, clearsSetID: clearsSetID, by: caller)
    if let status = plan.sealed, try seals.checkBytes(object, status, mayWait: true) == .afterReading {
      openAfterReading(node, flags, by: caller, later.keep())
      return nil
    }
    return try carryOut(plan, on: object, by: caller)
  }

  package func open(
    _ node: NodeID, flags: Int32, clearsSetID: Bool, by caller: Caller
  ) throws(Errno) -> Opened {
    memory.resolveDoubt(of: node)
    return try openNow(node, flags, clearsSetID: clearsSetID, by: caller)
  }

  /// Opens a file on this thread, however long that takes.
  ///
  /// `isNamed` says that the kernel has named the node.
  func openNow(
    _ node: NodeID, _ flags: Int32, clearsSetID: Bool, isNamed: Bool = true, by caller: Caller
  ) throws(Errno) -> Opened {
    let object = try nodes.reference(to: node, isNamed: isNamed)
    let plan = try planOpen(of: object, flags, clearsSetID: clearsSetID, by: caller)
    if let status = plan.sealed { _ = try seals.checkBytes(object, status, mayWait: false) }
    return try carryOut(plan, on: object, by: caller)
  }

  /// Answers when the file has been read for its seal, which notes what it finds.
  private func openAfterReading(_ node: NodeID, _ flags: Int32, by caller: Caller, _ reply: KeptOpen) {
    seals.readBytes(node, for: payer(caller).user) {
      do throws(Errno) {
        reply.send(try self.open(node, flags: flags, clearsSetID: false, by: caller))
      } catch {
        self.refused(RefusedRequest(.read, of: node, by: caller, note: RefusalNote.take()))
        reply.send(error)
      }
    }
  }

  /// The bytes of a file that the caller may read; nil if there are more than `limit`.
  func contents(of node: NodeID, limit: Int, by caller: Caller) throws(Errno) -> [UInt8]? {
    let object = try nodes.reference(to: node, isNamed: false)
    let plan = try planOpen(of: object, O_RDONLY, clearsSetID: false, by: caller)
    guard try object.fd.status().st_size <= limit else { return nil }
    if let status = plan.sealed { _ = try seals.checkBytes(object, status, mayWait: false) }
    let file = try object.fd.reopened(O_RDONLY | O_NONBLOCK)
    let bytes = try file.fd.readToEnd(limit: limit + 1)
    return bytes.count > limit ? nil : bytes
  }

  /// Throws unless the caller may open the file so; gives how it will be opened.
  private func planOpen(
    of object: borrowing NodeTable.Reference, _ flags: Int32, clearsSetID: Bool, by caller: Caller
  ) throws(Errno) -> OpenPlan {
    let status = try judgedStatus(of: object)
    guard status.isRegular else { throw status.isDirectory ? .EISDIR : .ENXIO }
    let judged = try self.object(status, object)
    let isRevocable = try isRevocable(judged.reach)
    let access = try authorizeOpen(judged, flags: flags, by: caller)
    if flags & Self.openForExec != 0, judged.zone.isReadOnlyRegion {
      try authorizeStart(of: object, judged)
    }
    if flags & Self.openForExec != 0, object.isOnVolume {
      let engine = volume.attached.volume(numbered: object.volume)?.engine
      try gate.authorizeProgram(on: judged, isForbidden: engine?.forbidsPrograms == true)
    }
    if flags & CLX_O_NOATIME != 0 { try gate.authorizeSparingTimes(of: judged, by: caller) }
    if access.writes || flags & O_TRUNC != 0 { peers.loseSibling(object.number) }
    return OpenPlan(
      access: access, flags: flags, truncates: flags & O_TRUNC != 0, clearsSetID: clearsSetID,
      mayAppendAlone: mayGrantAppendAlone(judged), isRevocable: isRevocable,
      sealed: judged.zone.isReadOnlyRegion ? status : nil)
  }

  /// Whether a file that is in this reach was granted, so that one who takes it back must know of its opens.
  ///
  /// ENOENT if that has happened since the kernel found its name: nobody would take back what is opened now.
  func isRevocable(_ reach: Reach) throws(Errno) -> Bool {
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
    try gate.authorize(rights, on: object, by: caller)
    guard appends, mayGrantAppendAlone(object), gate.denial(of: .write, on: object, to: caller) != nil else {
      return access
    }
    return access.subtracting(.write).union(.append)
  }

  /// Throws unless a program may be started here: one of a sandboxed app is started in its view.
  private func authorizeStart(
    of object: borrowing NodeTable.Reference, _ judged: Object
  ) throws(Errno) {
    guard !volume.settings.allowsDirectStart else { return }
    let decision = decideStart(inView: gate.isApps, isSandboxed: try seals.isSandboxed(object))
    try decision.enforce(in: judged.zone, reach: judged.reach)
  }

  /// The kernel's own flag in an open for execve.
  private static var openForExec: Int32 { 0x20 }
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
