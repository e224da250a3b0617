// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import CLinux
package import Fuse
internal import Glibc
package import LinuxIO
internal import Policy

// Changing attributes: mode, owners, size, times. Everything is authorized before anything is changed.

extension View {
  package func setAttributes(
    of node: NodeID, handle: HandleID?, to change: AttributeChange, by caller: Caller
  ) throws(Errno) -> Attributes {
    let object = try nodes.reference(to: node)
    let before = try judgedStatus(of: object)
    let judged = try self.object(before, object)
    try authorizeAll(change, handle: handle, on: judged, by: caller)

    // Where there are no owners they are what they are asked to be.
    if change.uid != nil || change.gid != nil, !object.zone.hasNoOwners {
      // The backing filesystem takes set-user-id and set-group-id away from files by itself here.
      try object.fd.changeOwner(uid: change.uid, gid: change.gid)
    }
    if let mode = change.mode {
      let group = change.gid ?? before.st_gid
      try object.fd.changeMode(
        gate.allowedMode(mode, gid: group, isDirectory: before.isDirectory, by: caller))
    }
    if let size = change.size { try truncate(object, handle: handle, to: size) }
    if change.clearsSetID { try clearSetID(object.fd, ofGroup: before.st_gid, by: caller) }
    if !change.access.isKeep || !change.modification.isKeep {
      try object.fd.changeTimes(access: change.access, modification: change.modification)
    }
    // The answer to a change tells all.
    let isTold = isAlone(object) && (change.mode != nil || change.size != nil)
    let after = isTold ? try object.fd.statusInMemory() : try object.fd.status()
    if let spellings = volume.spellings, before.isDirectory {
      spellings.noteTimes(of: object.number, before.st_mtim.nanoseconds, after.st_mtim.nanoseconds)
    }
    let judgedAfter = try self.object(after, object)
    // What the kernel knows of the entries must not let anyone past the directory's mode once this is
    // reported as done.
    if audience.isClosed(by: judged, judgedAfter) { memory.withdrawNames(in: object) }
    peers.rightsChanged(
      of: object.number, from: judged, to: judgedAfter,
      change.size == nil ? .attributes : [.attributes, .contents])
    return attributes(after, of: node, for: caller)
  }

  private func authorizeAll(
    _ change: AttributeChange, handle: HandleID?, on object: Object, by caller: Caller
  ) throws(Errno) {
    try decideAttributeChange(on: object).enforce(in: object.zone)
    if let mode = change.mode { try gate.authorizeMode(mode, on: object, by: caller) }
    if change.uid != nil || change.gid != nil {
      try gate.authorizeOwners(uid: change.uid, gid: change.gid, on: object, by: caller)
    }
    if change.size != nil {
      // Who has the file open for writing was asked when it was opened.
      let isOpenForWriting = handle.flatMap { try? files.find($0) }?.access.contains(.write) ?? false
      if !isOpenForWriting { try gate.authorize(.write, on: object, by: caller) }
    } else if !change.access.isKeep || !change.modification.isKeep {
      let isNow = change.access.isNow && change.modification.isNow
      try gate.authorizeTimes(toNow: isNow, on: object, by: caller)
    }
  }

  private func truncate(
    _ object: borrowing NodeTable.Reference, handle: HandleID?, to size: Int64
  ) throws(Errno) {
    guard size >= 0 else { throw .EINVAL }
    peers.loseSibling(object.number)
    memory.kept.changed(object.number, by: object.id)
    if let descriptor = handle.flatMap({ try? files.find($0) })?.descriptor {
      // An unprivileged daemon may have this descriptor without the file's mode letting it open another.
      try descriptor.use { (fd) throws(Errno) in try fd.truncateOpen(to: Int(size)) }
    } else {
      try object.fd.truncate(to: Int(size))
    }
  }

  /// Takes set-user-id and set-group-id away, as Linux does when someone without privilege changes a file.
  ///
  /// `group` is the group that the file had before, if it has another one by now; `known` its status.
  func clearSetID(
    _ file: FD, _ known: FileStatus? = nil, ofGroup group: UInt32? = nil, by caller: Caller
  ) throws(Errno) {
    let status = if let known { known } else { try file.status() }
    let mode = UInt32(status.permissions)
    let kept = modeWithoutSetID(mode) {
      caller.uid == 0 || gate.isMember(caller, of: group ?? status.st_gid)
    }
    if status.isRegular, kept != mode { try file.changeMode(kept) }
  }
}

extension TimeChange {
  fileprivate var isKeep: Bool { if case .keep = self { true } else { false } }
  fileprivate var isNow: Bool { if case .now = self { true } else { false } }
}
