// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Who asks.
///
/// Supplementary groups are not part of it: they are asked for only when a decision depends on them.
package struct Subject: Sendable {
  package let uid: UInt32
  package let gid: UInt32

  package init(uid: UInt32, gid: UInt32) {
    self.uid = uid
    self.gid = gid
  }

  /// Passes lists and modes, never the rules of a place or a flag.
  package var isSuperuser: Bool { uid == 0 }
}

/// Flags that somebody has only just brought along with an object, and may take off again.
package struct ArrivingFlags: Equatable, Sendable {
  package let flags: FileFlags
  package let user: UInt32

  package init(_ flags: FileFlags, of user: UInt32) {
    self.flags = flags
    self.user = user
  }
}

/// The permission-bearing part of what is asked for.
package struct Object: Sendable {
  /// What counts of an object's kind.
  package enum Kind: Sendable {
    case file
    case directory
    case symlink
    /// A fifo, a socket, a device: what is written to it goes elsewhere, and no flag stands against that.
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
  /// What the view that is asked through lets be done to it.
  package let reach: Reach
  /// Flags that do not hold yet for the user who brought them.
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

  /// The same with other flags.
  package func with(flags: FileFlags) -> Object {
    Object(
      uid: uid, gid: gid, mode: mode, kind: kind, zone: zone, flags: flags, acl: acl, reach: reach,
      arriving: arriving)
  }

  /// The same at another place.
  package func moved(to zone: Zone) -> Object {
    Object(
      uid: uid, gid: gid, mode: mode, kind: kind, zone: zone, flags: flags, acl: acl, reach: reach,
      arriving: arriving)
  }
}
