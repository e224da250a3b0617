// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Fuse
internal import Glibc
internal import LinuxIO
internal import Policy

// Questions about names: what gets one, loses it, or is moved. Each is answered by the function of Policy
// that is called.

extension Gate {
  /// Throws unless the caller may give something a name in a directory: `addition` is the right to add such a
  /// thing.
  func authorizeNewName(_ addition: Rights, in directory: Object, by caller: Caller) throws(Errno) {
    try enforce(on: directory, by: caller) { credentials, isMember in
      decideNewName(addition, in: directory, by: credentials, isMember: isMember)
    }
  }

  /// Throws if the name, which is of that zone, is not for the caller to give there: if only the daemon may
  /// give it, or if the directory is that of everyone's trash and the name another user's.
  func refuseReserved(
    _ name: Name, _ zone: Zone, ofDirectory isDirectory: Bool, in directory: Object, by caller: Caller
  ) throws(Errno) {
    try decideReservedName(zone, in: directory.zone).enforce(in: zone)
    guard directory.zone == .trashes else { return }
    try decideTrashName(
      name.buffer, ofDirectory: isDirectory, in: directory.zone, by: credentials(of: caller)
    ).enforce(in: directory.zone)
  }

  /// Throws if a directory with that name would be a container, which only the daemon creates.
  func refuseContainer(_ zone: Zone) throws(Errno) { try decideNewDirectory(zone).enforce(in: zone) }

  /// Throws unless the object may be moved to a name of that zone.
  func authorizeMove(of object: Object, to zone: Zone) throws(Errno) {
    try decideMove(of: object, to: zone).enforce(in: object.zone)
  }

  /// Throws unless the caller may give the object a parent in which it is in this zone.
  func authorizeNewParent(of object: Object, in zone: Zone, by caller: Caller) throws(Errno) {
    try enforce(on: object, by: caller) { credentials, isMember in
      decideNewParent(of: object, in: zone, by: credentials, isMember: isMember)
    }
  }

  /// Throws if an installed app is below a directory that someone wants to remove or to move.
  func refuseAboveReadOnlyRegion(_ status: FileStatus, _ zone: Zone) throws(Errno) {
    guard status.isDirectory else { return }
    try decideRemoval(ofDirectoryIn: zone, holdsApp: volume.readOnlyRegions.isAbove(ObjectNumber(status)))
      .enforce(in: zone)
  }

  /// Throws unless the caller may give a file one more name.
  func authorizeLink(to object: Object, by caller: Caller) throws(Errno) {
    try enforce(on: object, by: caller) { credentials, isMember in
      decideLink(to: object, by: credentials, isMember: isMember)
    }
  }

  /// Throws unless the caller may make something of this type.
  ///
  /// Corresponds to `mknod(2)`, which answers EPERM also for what it never makes.
  func authorizeNode(type: FileMode, by caller: Caller) throws(Errno) {
    switch type {
    case 0, S_IFREG, S_IFIFO, S_IFSOCK:
      return
    case S_IFCHR, S_IFBLK:
      try decideDevice(
        isSystem: volume.settings.isSystem, inWholeTree: scope.root == .whole, by: credentials(of: caller)
      ).enforce()
    default:
      throw .EPERM
    }
  }

  /// Throws unless the caller sees that a fifo or a socket is there that they may not reach.
  func authorizeStandIn(in directory: Object, by caller: Caller) throws(Errno) {
    try decideStandIn(in: directory, by: credentials(of: caller)).enforce(in: directory.zone)
  }

  /// Throws unless the caller may reach a fifo or a socket.
  func authorizeMeetingPoint(_ object: Object, isFifo: Bool, by caller: Caller) throws(Errno) {
    try enforce(on: object, by: caller) { credentials, isMember in
      decideMeetingPoint(object, isFifo: isFifo, by: credentials, isMember: isMember)
    }
  }
}
