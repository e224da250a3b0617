// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The rules of chown(2), utimensat(2) and setxattr(2). Those of chmod(2) are in `Decide+Mode.swift`, those
// of BSD flags in `FileFlags+Effect.swift`.

/// Tells whether any attribute of `object` may change at all, even by root or through an open file.
package func decideAttributeChange(on object: Object) -> Decision {
  object.zone.isReadOnly ? .deny(.readOnly) : .allow
}

/// Tells whether `caller` may do what only the owner and root may do, whatever an ACL says.
package func decideAsOwner(on object: Object, by caller: Credentials) -> Decision {
  caller.isSuperuser || object.isOwned(by: caller) ? .allow : .deny(.ownership)
}

/// Tells whether `caller` may give `object` these ids; nil leaves one as it is.
///
/// In addition to the Linux rules, an ACL can allow a user to take ownership.
package func decideOwnerChange(
  uid: UInt32?, gid: UInt32?, on object: Object, by caller: Credentials,
  isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  if object.zone.isReadOnly { return .deny(.readOnly) }
  if object.zone.hasNoOwners {
    // What it has already changes nothing, and it can't be anybody else's.
    let isTheirs =
      [nil, caller.uid, object.uid].contains(uid) && [nil, caller.gid, object.gid].contains(gid)
    return isTheirs ? .allow : .deny(.ownership)
  }
  var rights = Rights.nothing
  if let uid, uid != object.uid {
    guard caller.isSuperuser || caller.uid == uid else { return .deny(.ownership) }
    rights.insert(.takeOwnership)
  }
  // Linux refuses a non-owner even if nothing would change.
  if rights.isEmpty || gid != nil { rights.insert(.writeSecurity) }
  let decision = decide(rights, on: object, by: caller, isMember: isMember)
  if case .deny = decision { return decision }
  if let gid, gid != object.gid, !caller.isSuperuser,
    caller.membership(in: gid, isMember: isMember) != .member
  {
    return .deny(.ownership)
  }
  return .allow
}

/// Tells whether a program may be started on a volume, whose mount may forbid that for all.
package func decideProgram(isForbidden: Bool) -> Decision { isForbidden ? .deny(.mode) : .allow }

/// Tells whether `caller` may set the times of `object`.
///
/// Setting both times to now needs the right to write attributes. Any other time needs the owner as well,
/// whom an ACL must not deny that right.
package func decideTimeChange(
  toNow isNow: Bool, on object: Object, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  if object.zone.isReadOnly { return .deny(.readOnly) }
  if !isNow, case .deny(let denial) = decideAsOwner(on: object, by: caller) { return .deny(denial) }
  return decide(.writeAttributes, on: object, by: caller, isMember: isMember)
}

// MARK: - Extended attributes

/// What an extended attribute's name says about who may set and remove it.
package enum AttributeNamespace: Sendable {
  /// `user.*`.
  case user
  /// Those of `user.*` that leave an object out of backups: its owner's and root's to set.
  case backupMark
  /// Attributes for which the kernel requires a capability.
  ///
  /// `isRoots`: only root can have it here.
  case privileged(isRoots: Bool)
  /// The daemon's own, which do not exist for anyone else.
  case reserved
  /// About which no rule is but those that hold for all.
  case other
}

/// Tells whether `caller` may set or remove an extended attribute of `object`.
package func decideExtendedAttributeChange(
  in namespace: AttributeNamespace, on object: Object, by caller: Credentials,
  isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  if object.zone.isReadOnly { return .deny(.readOnly) }
  if object.zone.isUnchangeable { return .deny(.place) }
  switch namespace {
  case .other: return .allow
  case .reserved: return .deny(.place)
  case .backupMark:
    // A mark takes everything in a directory along, whoever put it there.
    if case .deny(let denial) = decideAsOwner(on: object, by: caller) { return .deny(denial) }
  case .user:
    // On a sticky directory, which everyone may write to, only its owner sets them. Corresponds to
    // `xattr(7)`.
    if object.isDirectory, object.mode & 0o1000 != 0,
      case .deny = decideAsOwner(on: object, by: caller)
    {
      return .deny(.sticky)
    }
  case .privileged(let isRoots):
    if isRoots, !caller.isSuperuser { return .deny(.ownership) }
    // The kernel's question was for a capability; flags it does not know.
    if object.flags.isDisjoint(with: .immutable.union(.appendOnly)) { return .allow }
  }
  return decide(.writeExtended, on: object, by: caller, isMember: isMember)
}

/// Tells whether `caller` may see the names of an object's extended attributes.
///
/// On Linux the mode never forbids that; an ACL may.
package func decideAttributeNames(
  on object: Object, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  if case .none = object.acl { return .allow }
  let decision = decide(.readExtended, on: object, by: caller, isMember: isMember)
  return decision == .deny(.acl) ? decision : .allow
}

/// Tells whether `caller` may remove a file's capabilities, which the kernel requests before every write.
///
/// The writer may have the right to append only.
package func decideCapabilityRemoval(
  on object: Object, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  if case .allow = decide(.write, on: object, by: caller, isMember: isMember) { return .allow }
  return decide(.append, on: object, by: caller, isMember: isMember)
}
