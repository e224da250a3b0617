// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

// A home is closed while it is removed: nobody but root gets into it, so that nobody puts something into what
// is just being emptied. Whoever is in it already stays in it; they are looked for after that.

/// How a home was before it was closed.
package struct ClosedHome: Sendable {
  fileprivate let name: String
  fileprivate var mode: FileMode
  fileprivate var acl: AccessControlList?
  fileprivate var flags: FileFlags
  fileprivate let owner: (uid: UInt32, gid: UInt32)
}

extension Homes {
  /// Closes a home to everyone but root, its owner included, who can't open it again either.
  ///
  /// Nil where nobody else gets to it, or where the owner is who removes it.
  package func close(_ name: String) throws(StoreError) -> ClosedHome? {
    guard isForSeveralUsers else { return nil }
    do throws(Errno) {
      let home = try users.fd.child(name)
      var before = try door(of: home.fd, named: name)
      if before.flags.contains(.systemImmutable), before.mode == 0 {
        // A removal was stopped in this state.
        (before.mode, before.acl, before.flags) = (HomeDirectory.homeMode, HomeDirectory.staying, [])
      }
      do throws(Errno) {
        access.clear(home.fd)
        try home.fd.changeMode(0)
        // With this flag the owner can change neither the mode nor the ACL.
        try access.setFlags([.systemImmutable], on: home.fd)
        let mode = try home.fd.status().permissions
        let acl = try access.acl(of: home.fd)
        // The owner was faster.
        guard mode == 0, acl == nil else { throw .EBUSY }
      } catch {
        try? open(home.fd, as: before)
        if error == .EOPNOTSUPP { return nil }
        throw error
      }
      return before
    } catch {
      throw failure(error, doing: "close the home", name)
    }
  }

  /// Gives back a home that is not removed after all.
  package func reopen(_ closed: ClosedHome) throws(StoreError) {
    try explaining("open again the home", "\(path)/\(closed.name)") { () throws(Errno) in
      let home = try users.fd.child(closed.name)
      try open(home.fd, as: closed)
    }
  }

  /// How a home is now.
  func door(of home: FD, named name: String) throws(Errno) -> ClosedHome {
    let status = try home.status()
    return ClosedHome(
      name: name, mode: status.permissions, acl: try? access.acl(of: home),
      flags: (try? access.flags(of: home)) ?? [], owner: (status.st_uid, status.st_gid))
  }

  /// Gives back a home that was disowned, and is not removed after all.
  func giveBack(_ home: FD, as before: ClosedHome) throws(Errno) {
    access.clear(home)
    try home.changeOwner(uid: before.owner.uid, gid: before.owner.gid)
    try open(home, as: before)
  }

  private func open(_ home: FD, as before: ClosedHome) throws(Errno) {
    access.clear(home)
    try home.changeMode(before.mode)
    if let acl = before.acl { try access.setACL(acl, on: home) }
    if !before.flags.isEmpty { try access.setFlags(before.flags, on: home) }
  }

  /// Takes all directories of what was a home away from their owners, from the top down: whoever has one of
  /// them open makes nothing in it any more.
  ///
  /// `closed` says how it was before: a directory that is moved to where fewer may search has the names
  /// withdrawn that the kernel has of the whole tree, and with them what is mounted in other homes.
  func disownTree(_ taken: String, _ closed: ClosedHome?) {
    guard isForSeveralUsers, let top = try? workshop.fd.openDirectory(taken) else { return }
    _ = try? DeepWalk.through(top.fd, mostWaiting: StorageUsage.mostWaiting) { (entry) throws(Errno) in
      guard let child = try? entry.directory.child(entry.name), let status = try? child.fd.status(),
        status.isDirectory
      else { return false }
      access.clear(child.fd)
      disown(child.fd, status.permissions & 0o755)
      return true
    }
    if let closed { try? top.fd.changeMode(closed.mode & 0o755) }
  }

  /// Takes a directory away from its owner.
  func disown(_ directory: FD, _ mode: FileMode) {
    guard isForSeveralUsers else { return }
    try? directory.changeOwner(uid: 0, gid: 0)
    try? directory.changeMode(mode)
  }
}
