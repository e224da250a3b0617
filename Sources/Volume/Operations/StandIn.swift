// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

// The kernel opens a fifo, and connects to a socket, without a request. So only callers who may use one find
// it. But the owner of a directory must be able to see and to remove what others leave in it. They find a
// stand-in: a socket of root's to which nothing is bound. The kernel can neither open it nor connect to it.
//
// The kernel knows the stand-in as another inode than the fifo or the socket. Users share its names, but it
// looks up such a name each time (validity 0), for the user who walks. If the answer is another inode than
// before, the kernel drops what it knew of the name. So a user gets the inode that the answer to them had,
// whoever came before. What is done to a name (unlink, rename) reaches the daemon as a name, and is done to
// what really has it. What is done to the inode (chmod, link, setxattr) is done to the stand-in, and refused:
// it is root's.

extension View {
  /// What the caller finds in the place of a fifo or a socket that they may not use; nil if they find
  /// nothing.
  func standIn(
    for name: Name, in directory: borrowing NodeTable.Reference, zone: Zone, position: Position,
    by caller: Caller
  ) -> Entry? {
    // In a store without root there is one user. A volume may be gone at any time; this would not be.
    guard volume.settings.isSystem, !directory.isOnVolume, let staging = volume.staging else { return nil }
    do throws(Errno) {
      let place = try object(directory.fd.status(), directory)
      try gate.authorizeStandIn(in: place, by: caller)
      let object = try nodes.openWithRoom { () throws(Errno) in try staging.standIn() }
      let status = try object.fd.status()
      let node = try nodes.intern(
        object, status, named: name, in: directory, zone: zone, position: position)
      return Entry(node: node, attributes: Attributes(status, validity: 0), validity: 0)
    } catch {
      return nil
    }
  }
}

extension Staging {
  private static let standInName = "stand-in"

  /// The stand-in; made if it is missing, because a daemon begins with an empty directory.
  fileprivate func standIn() throws(Errno) -> OwnedFD {
    do throws(Errno) {
      return try directory.child(Self.standInName)
    } catch .ENOENT {
      do throws(Errno) {
        // This thread may still act for the user whose request it has served before.
        try ThreadIdentity.with(uid: 0, gid: 0, lasting: false) { () throws(Errno) in
          try Self.standInName.withName { (name) throws(Errno) in
            try directory.makeNode(name, mode: S_IFSOCK)
          }
        }
      } catch .EEXIST {
        // Another thread has just made it.
      }
      return try directory.child(Self.standInName)
    }
  }
}
