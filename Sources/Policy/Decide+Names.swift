// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What may get a name, lose it, or be moved, beyond the rights to it and to its directory.

/// Tells whether `caller` may give something a name in a directory; `addition` is the right to add such a
/// thing.
///
/// The two rights are evaluated separately, as on macOS: an ACL may allow each of them and deny both
/// together.
package func decideNewName(
  _ addition: Rights, in directory: Object, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  let decision = decide(addition, on: directory, by: caller, isMember: isMember)
  if case .deny = decision { return decision }
  return decide(.search, on: directory, by: caller, isMember: isMember)
}

/// Tells whether anyone but the daemon may give a name of this zone to something in a directory.
///
/// The names of read-only regions and Inboxes are reserved even while nothing has them, and at the top of an
/// app's home all names but those with a dot.
package func decideReservedName(_ zone: Zone, in directory: Zone) -> Decision {
  if zone.isReadOnlyRegion { return .deny(.readOnly) }
  return zone == .inbox || !directory.mayGet(zone) ? .deny(.place) : .allow
}

/// Tells whether `caller` may give something this name, as far as the directory is that of everyone's trash.
///
/// There, the only name that a user can give is their number, and only to a directory: so nobody takes
/// another one's name, and nothing else is kept there.
package func decideTrashName(
  _ name: some Collection<UInt8>, ofDirectory isDirectory: Bool, in directory: Zone, by caller: Credentials
) -> Decision {
  guard directory == .trashes else { return .allow }
  return isDirectory && name.elementsEqual(String(caller.uid).utf8) ? .allow : .deny(.place)
}

/// Tells whether anyone but the daemon may give a directory a name of this zone.
package func decideNewDirectory(_ zone: Zone) -> Decision {
  zone.isContainer ? .deny(.place) : .allow
}

/// Tells whether `object` may be moved to a name of this zone.
///
/// A directory that is a container, contains containers or would become one can't be moved. Otherwise a user
/// could move it away, change what the location rules forbid, and move it back.
package func decideMove(of object: Object, to zone: Zone) -> Decision {
  guard object.isDirectory else { return .allow }
  return object.zone.keepsItsPlace ? .deny(.place) : decideNewDirectory(zone)
}

/// Tells whether `caller` may give `object` another parent, where it is in this zone.
///
/// Moving a directory changes its `..`, so it needs a right to the directory itself. A delivered object may
/// leave its Inbox and can be changed only then, so it is judged in its new zone.
package func decideNewParent(
  of object: Object, in zone: Zone, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  guard object.isDirectory else { return .allow }
  let moved = object.zone.isDelivery ? object.moved(to: zone) : object
  return decide(.addSubdirectory, on: moved, by: caller, isMember: isMember)
}

extension Zone {
  /// Whether installed apps may be in a directory here, or further below it.
  package var mayHoldApps: Bool { self == .home || app != nil }
}

/// Tells whether a directory in this zone may be removed or moved; `holdsApp` says whether an installed app
/// is below it, and is asked only where one can be.
package func decideRemoval(ofDirectoryIn zone: Zone, holdsApp: @autoclosure () -> Bool) -> Decision {
  zone.mayHoldApps && holdsApp() ? .deny(.place) : .allow
}

/// Tells whether `caller` may give a file one more name.
///
/// Corresponds to `fs.protected_hardlinks`. The kernel also checks for read and write access, but does not
/// pass that check on to FUSE.
package func decideLink(
  to object: Object, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  let decision = decide(.link, on: object, by: caller, isMember: isMember)
  if case .deny = decision { return decision }
  if case .allow = decideAsOwner(on: object, by: caller) { return .allow }
  let isSetUserID = object.mode & 0o4000 != 0
  let isSetGroupID = object.mode & 0o2010 == 0o2010
  guard object.kind == .file, !isSetUserID, !isSetGroupID,
    case .allow = decide([.read, .write], on: object, by: caller, isMember: isMember)
  else { return .deny(.ownership) }
  return .allow
}

/// Tells whether `caller` may make a device node.
///
/// Nobody can open a device through the mount (nodev), but a user who can reach the store directory could.
package func decideDevice(isSystem: Bool, inWholeTree: Bool, by caller: Credentials) -> Decision {
  guard isSystem, caller.isSuperuser else { return .deny(.ownership) }
  return inWholeTree ? .allow : .deny(.place)
}

/// Tells whether `caller`, who may not find a fifo or a socket in a directory, sees that something is there.
///
/// The owner of a directory may list it and remove what is in it.
package func decideStandIn(in directory: Object, by caller: Credentials) -> Decision {
  directory.isOwned(by: caller) ? .allow : .deny(.mode)
}

/// Tells whether `caller` may find a fifo or a socket.
///
/// The kernel opens fifos and connects to sockets without a request to the daemon, so finding the name is
/// enough. So a lookup succeeds only for callers who may use the object in every way that the kernel would
/// allow them.
package func decideMeetingPoint(
  _ object: Object, isFifo: Bool, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  if case .none = object.acl {
    let all: UInt32 = isFifo ? 0o666 : 0o222
    if object.mode & all == all || object.isOwned(by: caller) { return .allow }
  }
  return decide(isFifo ? [.read, .write] : .write, on: object, by: caller, isMember: isMember)
}
