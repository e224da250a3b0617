// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The rules of chmod(2), and what becomes of set-user-id and set-group-id.

private let setUserID: UInt32 = 0o4000
private let setGroupID: UInt32 = 0o2000

/// Tells whether `caller` may give `object` this mode.
///
/// `throughApp` says that they ask through the view of an app.
package func decideModeChange(
  to mode: UInt32, on object: Object, throughApp: Bool, by caller: Credentials,
  isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  let decision = decide(.writeSecurity, on: object, by: caller, isMember: isMember)
  if case .deny = decision { return decision }
  let added = mode & ~object.mode
  // Whoever runs that program, outside too, would act as the app's user.
  if throughApp, !object.isDirectory, added & (setUserID | setGroupID) != 0 { return .deny(.place) }
  if caller.isSuperuser || object.isOwned(by: caller) { return .allow }
  // An ACL may let other users change the mode, but only the owner decides with whose rights a program runs.
  if added & setUserID != 0 { return .deny(.ownership) }
  if added & setGroupID != 0, caller.membership(in: object.gid, isMember: isMember) != .member {
    return .deny(.ownership)
  }
  return .allow
}

/// The part of a requested mode that `caller` can give an object of this group.
///
/// Set-group-id is only for a member of the group to give, also to a directory. No file of an app's gets that
/// or set-user-id.
package func allowedMode(
  _ mode: UInt32, gid: UInt32, isDirectory: Bool, throughApp: Bool, by caller: Credentials,
  isMember: (_ gid: UInt32) -> Membership
) -> UInt32 {
  if throughApp, !isDirectory { return mode & ~(setUserID | setGroupID) }
  guard mode & setGroupID != 0, !caller.isSuperuser,
    caller.membership(in: gid, isMember: isMember) != .member
  else { return mode }
  return mode & ~setGroupID
}

/// The mode that stays after someone without privilege has changed a file's data, owner or size.
///
/// Corresponds to what Linux does on write(2): set-user-id goes, and so does set-group-id, unless the group
/// may not execute the file and who changes it is in the group.
package func modeWithoutSetID(_ mode: UInt32, isMember: () -> Bool) -> UInt32 {
  let kept = mode & ~setUserID
  guard mode & setGroupID != 0 else { return kept }
  return mode & 0o010 == 0 && isMember() ? kept : kept & ~setGroupID
}
