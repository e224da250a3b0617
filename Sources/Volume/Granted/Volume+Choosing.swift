// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO
package import Policy
package import Store

/// What was found at a path that someone has chosen.
package struct ChosenObject: Sendable {
  package let identity: ObjectIdentity
  package let isDirectory: Bool
  /// What programs are told as its number.
  package let shownInode: UInt64
}

extension Volume {
  /// Finds what someone has chosen, who must be able to reach it, and to read or to write it.
  ///
  /// Each directory on the way is asked, as when they had looked themselves. ELOOP for a link, anywhere on
  /// the way; ENXIO for what is neither a file nor a directory; EROFS in an installed app or the system
  /// domain.
  package func choose(
    _ names: [[UInt8]], by caller: Credentials, isMember: (_ gid: UInt32) -> Membership, writing: Bool
  ) throws(Errno) -> ChosenObject {
    guard let last = names.last else { throw .EINVAL }
    var directory = try tree.open(Name.here, O_DIRECTORY | pathOnly)
    var zone = Zone.top
    for name in names.dropLast() {
      let next = try child(name, of: directory.fd, zone, by: caller, isMember)
      guard try next.fd.status().isDirectory else { throw .ENOTDIR }
      zone = try self.zone(of: name, in: directory.fd, zone, for: caller.uid)
      directory = next
    }
    let object = try child(last, of: directory.fd, zone, by: caller, isMember)
    let kind = try self.zone(of: last, in: directory.fd, zone, for: caller.uid)
    try authorizeChoice(in: kind)
    let status = try object.fd.status()
    guard status.isRegular || status.isDirectory else { throw .ENXIO }
    // One after the other: an ACL may say yes to each and no to all at once.
    var questions: [Rights] = status.isDirectory ? [.list, .search] : [.read]
    if writing { questions += status.isDirectory ? [.addFile, .addSubdirectory] : [.write] }
    for rights in questions { try authorize(rights, on: object.fd, status, kind, by: caller, isMember) }
    return ChosenObject(
      identity: ObjectIdentity(status, of: object.fd), isDirectory: status.isDirectory,
      shownInode: shown(ObjectNumber(status)))
  }

  /// Finds a name in a directory, which must be searchable.
  private func child(
    _ name: [UInt8], of directory: FD, _ zone: Zone, by caller: Credentials,
    _ isMember: (_ gid: UInt32) -> Membership
  ) throws(Errno) -> OwnedFD {
    let status = try directory.status()
    try authorize(.search, on: directory, status, zone, by: caller, isMember)
    try name.withName { (name) throws(Errno) in if !name.isComponent { throw .EINVAL } }
    let object = try child(name, of: directory, ObjectNumber(status), for: caller.uid)
    let found = try object.fd.status()
    let number = ObjectNumber(status)
    if zone.isOnVolume || number.device != device { try attached.check(found, in: number) }
    if found.isSymlink { throw .ELOOP }
    return object
  }

  func zone(
    of name: [UInt8], in directory: FD, _ zone: Zone, for user: UInt32
  ) throws(Errno) -> Zone {
    let number = ObjectNumber(try directory.status())
    if zone.mayHoldVolumes,
      let found = attached.find(name, in: number, for: user, ignoringCase: settings.ignoresCase)
    {
      return found.zone
    }
    return try name.withName { (name) throws(Errno) in self.zone(of: name, in: number, zone) }
  }

  func authorize(
    _ rights: Rights, on object: FD, _ status: FileStatus, _ zone: Zone, by caller: Credentials,
    _ isMember: (_ gid: UInt32) -> Membership
  ) throws(Errno) {
    let security = security(of: object, ObjectNumber(status))
    let judged = Object(status, zone: zone, reach: .everything, security: security)
    try authorize(rights, on: judged, by: caller, isMember)
  }
}
