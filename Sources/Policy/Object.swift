// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The credentials by which a caller is judged.
///
/// Supplementary groups are not included: they are looked up only when a decision depends on them.
package struct Credentials: Sendable {
  package let uid: UInt32
  package let gid: UInt32
  /// Whether the caller may use the view through which the request came.
  ///
  /// A view may belong to one user: its kernel caches everything for that user.
  package let mayUseView: Bool

  package init(uid: UInt32, gid: UInt32, mayUseView: Bool = true) {
    self.uid = uid
    self.gid = gid
    self.mayUseView = mayUseView
  }

  /// Root passes ACLs and modes, but never a location rule or a flag.
  package var isSuperuser: Bool { uid == 0 }
}

/// Flags that a user has just set on an object by copying it, and may still clear.
package struct ArrivingFlags: Equatable, Sendable {
  package let flags: FileFlags
  package let user: UInt32

  package init(_ flags: FileFlags, of user: UInt32) {
    self.flags = flags
    self.user = user
  }
}

/// What a decision needs to know about the object of a request.
package struct Object: Sendable {
  /// The kinds of objects that the rules tell apart.
  package enum Kind: Sendable {
    case file
    case directory
    case symlink
    /// A fifo, socket or device.
    ///
    /// Writing to it does not change the object, so no flag forbids that.
    case special
  }

  package let uid: UInt32
  package let gid: UInt32
  /// The twelve permission bits.
  package let mode: UInt32
  package let kind: Kind
  package let zone: Zone
  package let flags: FileFlags
  package let acl: AccessControl
  /// What the view of the request allows to be done to the object.
  package let reach: Reach
  /// Flags that do not yet apply to the user who set them.
  package let arriving: ArrivingFlags?

  package init(
    uid: UInt32, gid: UInt32, mode: UInt32, kind: Kind, zone: Zone, flags: FileFlags = [],
    acl: AccessControl = .none, reach: Reach = .everything, arriving: ArrivingFlags? = nil
  ) {
    self.uid = uid
    self.gid = gid
    self.mode = mode
    self.kind = kind
    self.zone = zone
    self.flags = flags
    self.acl = acl
    self.reach = reach
    self.arriving = arriving
  }

  package var isDirectory: Bool { kind == .directory }

  /// Whether the caller counts as its owner.
  package func isOwned(by caller: Credentials) -> Bool { caller.uid == uid || zone.hasNoOwners }

  /// The same with other flags.
  package func with(flags: FileFlags) -> Object {
    Object(
      uid: uid, gid: gid, mode: mode, kind: kind, zone: zone, flags: flags, acl: acl, reach: reach,
      arriving: arriving)
  }

  /// The same object in another zone.
  package func moved(to zone: Zone) -> Object {
    Object(
      uid: uid, gid: gid, mode: mode, kind: kind, zone: zone, flags: flags, acl: acl, reach: reach,
      arriving: arriving)
  }
}
