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
    try make(name, in: parent, .addSubdirectory, by: caller) { (directory, _) throws(Errno) in
      try directory.makeDirectory(name, mode: mode & 0o7777)
    }
  }

  package func makeNode(
    _ name: Name, in parent: NodeID, mode: FileMode, by caller: Caller
  ) throws(Errno) -> Entry {
    let type = mode & S_IFMT
    // A device here would be a way around every rule of the machine.
    guard type == S_IFREG || type == S_IFIFO || type == S_IFSOCK || type == 0 else { throw .EPERM }
    return try make(name, in: parent, .addFile, by: caller) { (directory, gid) throws(Errno) in
      let permissions = self.allowedMode(mode & 0o7777, gid: gid, isDirectory: false, by: caller)
      try directory.makeNode(name, mode: type | permissions)
    }
  }

  package func makeSymlink(
    _ name: Name, in parent: NodeID, to target: UnsafePointer<CChar>, by caller: Caller
  ) throws(Errno) -> Entry {
    try make(name, in: parent, .addFile, by: caller) { (directory, _) throws(Errno) in
      try directory.makeSymlink(name, to: target)
    }
  }

  package func link(
    _ node: NodeID, as name: Name, in parent: NodeID, by caller: Caller
  ) throws(Errno) -> Entry {
    let object = try nodes.pin(node)
    let directory = try nodes.pin(parent)
    let status = try directory.fd.status()
    try authorize([.addFile, .search], on: status, zone: directory.zone, by: caller)
    try authorizeLink(to: try object.fd.status(), zone: object.zone, by: caller)
    try object.fd.link(into: directory.fd, as: name)
    do throws(Errno) {
      return try entry(name, in: directory, status, by: caller)
    } catch {
      try? directory.fd.remove(name, directory: false)
      throw error
    }
  }

  package func readLink(_ node: NodeID, into buffer: UnsafeMutableRawBufferPointer) throws(Errno) -> Int {
    let object = try nodes.pin(node)
    return try object.fd.readLink(into: buffer)
  }

  /// Asks the gate, makes something by `body` as the caller's, and looks it up.
  ///
  /// `body` gets the group that it will have.
  private func make(
    _ name: Name, in parent: NodeID, _ right: Rights, by caller: Caller,
    _ body: (FD, UInt32) throws(Errno) -> Void
  ) throws(Errno) -> Entry {
    let directory = try nodes.pin(parent)
    let status = try directory.fd.status()
    try authorize([right, .search], on: status, zone: directory.zone, by: caller)
    let fd = directory.fd
    let gid = groupOfNew(in: status, by: caller)
    try asOwner(caller, gid: gid) { () throws(Errno) in try body(fd, gid) }
    do throws(Errno) {
      let object = try nodes.openWithRoom { () throws(Errno) in try fd.child(name) }
      try settleGroup(of: object.fd, gid)
      return try entry(object, name, in: directory, status, by: caller)
    } catch {
      // The client is told that there is nothing, and its kernel remembers that.
      try? fd.remove(name, directory: right == .addSubdirectory)
      throw error
    }
  }

  /// The group of a new object: that of its directory, or with `nogrpid` the caller's.
  func groupOfNew(in directory: FileStatus, by caller: Caller) -> UInt32 {
    // In a set-group-id directory the backing filesystem gives the directory's group under either rule.
    let inherits = !volume.settings.callerGroup || directory.st_mode & S_ISGID != 0
    return inherits ? directory.st_gid : caller.gid
  }

  /// Lets what `body` makes belong to the caller and to `gid`.
  @inline(__always)
  func asOwner<Result: ~Copyable>(
    _ caller: Caller, gid: UInt32, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    guard volume.settings.isSystem, caller.uid != 0 || gid != 0 else { return try body() }
    return try ThreadIdentity.with(uid: caller.uid, gid: gid, body)
  }

  /// Gives a new object its group where the daemon could not make it with that.
  ///
  /// A user's daemon can give a group that the user is in; where it can't, the object keeps the user's own, as on Linux.
  func settleGroup(of object: FD, _ gid: UInt32) throws(Errno) {
    guard !volume.settings.isSystem else { return }
    let status = try object.status()
    guard status.st_gid != gid else { return }
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
