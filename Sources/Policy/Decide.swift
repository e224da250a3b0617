// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The order of the reasons, and who passes which:
//
// 1. the seal of the place       nobody
// 2. a rule of the place         nobody
// 3. flags                       nobody
// 4. the list, then the mode     root (who runs only what someone may run)
//
// Whether something may be deleted is asked of the object and of the directory that it is in; all else of the
// object alone.

/// Tells whether `subject` may do all of `rights` to `object`, which lies in `parent`.
///
/// Total and pure: every combination has an answer, and nothing but the arguments decides. `parent` counts
/// only where `rights` contain `delete`; without one, only the object's own list can allow that. `isMember`
/// is asked only if the answer hangs on it, and never about the subject's primary group.
package func decide(
  _ rights: Rights, on object: Object, in parent: Object? = nil, by subject: Subject,
  isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  let rights = rights.expanded
  if !rights.isDisjoint(with: .modifying),
    let refusal = refusalForAll(of: rights, on: object, in: parent, by: subject)
  {
    return .deny(refusal)
  }
  // As on a filesystem from which nothing is run.
  if rights.contains(.execute), !object.isDirectory, !object.reach.contains(.execute) { return .deny(.mode) }
  if subject.isSuperuser { return decideForSuperuser(rights, on: object) }

  if rights.contains(.delete),
    let refusal = refusalToDelete(object, in: parent, by: subject, isMember: isMember)
  {
    return .deny(refusal)
  }
  let others = rights.subtracting([.delete, .link])
  if others.isEmpty { return .allow }
  return decideByListAndMode(rights.subtracting(.link), on: object, by: subject, isMember: isMember)
}

/// What stands against a change whoever asks for it, root included.
private func refusalForAll(
  of rights: Rights, on object: Object, in parent: Object?, by subject: Subject
) -> Denial? {
  let isDelete = rights.contains(.delete)
  if object.zone.isSealed { return .sealed }
  if isDelete, let parent, parent.zone.isSealed { return .sealed }
  if !object.mayBeReached(with: rights, in: parent) || object.zone.isFixture { return .place }
  if object.isHeldAsDelivery(against: rights) { return .place }
  if isDelete, object.zone.isSkeleton || parent?.zone.hasFixedNames == true { return .place }
  if object.isDirectory, object.zone.hasFixedNames,
    !rights.isDisjoint(with: [.addFile, .addSubdirectory, .deleteChild])
  {
    return .place
  }
  if object.refusesByFlags(rights, by: subject) { return .flags }
  if isDelete, let parent, parent.refusesByFlags(.deleteChild, by: subject) { return .flags }
  return nil
}

extension Object {
  /// Whether flags stand against it.
  fileprivate func refusesByFlags(_ rights: Rights, by subject: Subject) -> Bool {
    guard let arriving, arriving.user == subject.uid else { return flags.refuse(rights, to: kind) }
    return flags.subtracting(arriving.flags).refuse(rights, to: kind)
  }

  /// Whether the view lets something be changed so.
  ///
  /// Beside a file that was granted, files may be made, and what was granted there may be removed or
  /// replaced.
  fileprivate func mayBeReached(with rights: Rights, in parent: Object?) -> Bool {
    guard reach.contains(.write) else {
      return reach.contains(.beside) && isDirectory
        && rights.isDisjoint(with: .modifying.subtracting(.addFile))
    }
    guard rights.contains(.delete), let parent, !parent.reach.contains(.write) else { return true }
    return parent.reach.contains(.beside) && reach.contains(.revocable)
  }

  /// Whether it is an Inbox, which only loses what is in it, or was delivered, and is only read and taken
  /// away.
  fileprivate func isHeldAsDelivery(against rights: Rights) -> Bool {
    guard zone.isDelivery else { return false }
    // Only a directory is an Inbox. What has come there otherwise under its name is nothing to keep.
    let mayLose: Rights = zone == .inbox && isDirectory ? .deleteChild : [.delete, .deleteChild]
    return !rights.intersection(.modifying).isSubset(of: mayLose)
  }
}

/// Root passes lists and modes, but runs only what someone may run.
private func decideForSuperuser(_ rights: Rights, on object: Object) -> Decision {
  guard rights.contains(.execute), !object.isDirectory, object.mode & 0o111 == 0 else { return .allow }
  return .deny(.mode)
}

/// What stands against removing or renaming: the object's own list is asked first and has the last word, if
/// it has one.
private func refusalToDelete(
  _ object: Object, in parent: Object?, by subject: Subject, isMember: (_ gid: UInt32) -> Membership
) -> Denial? {
  switch object.verdict(on: .delete, for: subject, isMember: isMember) {
  case .allow: return nil
  case .deny: return .list
  case .silent: break
  }
  guard let parent else { return .mode }
  switch parent.verdict(on: .deleteChild, for: subject, isMember: isMember) {
  case .allow: return nil
  case .deny: return .list
  case .silent: break
  }
  guard parent.grants(0o2, to: subject, isMember: isMember) else { return .mode }
  let isSticky = parent.mode & 0o1000 != 0
  if isSticky, subject.uid != object.uid, subject.uid != parent.uid { return .sticky }
  return nil
}

/// What list and mode say.
///
/// If `delete` is among the rights it has been decided before. It is still asked for, since what a list says
/// to a question hangs on all of it, but no mode bit stands for it.
func decideByListAndMode(
  _ rights: Rights, on object: Object, by subject: Subject, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  let isOwner = subject.uid == object.uid
  var asked = rights
  // The owner can always change the security of what they own, and so can who is about to own it.
  if isOwner || asked.contains(.takeOwnership) { asked.remove(.writeSecurity) }
  if asked.isEmpty { return .allow }

  var open: Rights
  switch object.verdict(on: asked, for: subject, isMember: isMember) {
  case .allow: return .allow
  case .deny(let refused): return .deny(refused.isDisjoint(with: .ownership) ? .list : .ownership)
  case .silent(let rest): open = rest
  }
  open.remove(.delete)
  // The owner sets the times, unless the list has just said no.
  if isOwner { open.remove(.writeAttributes) }
  if !open.isDisjoint(with: .ownership) { return .deny(.ownership) }
  return object.grants(modeBits(for: open), to: subject, isMember: isMember) ? .allow : .deny(.mode)
}

/// The rwx bits that stand for what no list has said anything about.
private func modeBits(for rights: Rights) -> UInt32 {
  var bits: UInt32 = 0
  if !rights.isDisjoint(with: [.read, .readExtended]) { bits |= 0o4 }
  if !rights.isDisjoint(with: [.write, .append, .deleteChild, .writeAttributes, .writeExtended]) {
    bits |= 0o2
  }
  if rights.contains(.execute) { bits |= 0o1 }
  return bits
}

extension Rights {
  /// What neither a mode bit nor being allowed to write gives anyone.
  fileprivate static let ownership: Rights = [.writeSecurity, .takeOwnership]
}

extension Object {
  /// What the object's list says; no list says nothing, and a damaged one refuses all.
  fileprivate func verdict(
    on rights: Rights, for subject: Subject, isMember: (_ gid: UInt32) -> Membership
  ) -> Verdict {
    switch acl {
    case .none: .silent(rights)
    case .damaged: .deny(rights)
    case .list(let list): list.verdict(on: rights, of: self, for: subject, isMember: isMember)
    }
  }

  /// Whether the one class of mode bits that counts for the subject has all that is needed.
  ///
  /// Groups are not asked for where both classes have the same answer. Who can't be told to be in the group
  /// or not has what both classes have.
  fileprivate func grants(
    _ needed: UInt32, to subject: Subject, isMember: (_ gid: UInt32) -> Membership
  ) -> Bool {
    if subject.uid == uid { return mode >> 6 & needed == needed }
    let group = mode >> 3 & needed == needed
    let other = mode & needed == needed
    if group == other { return group }
    switch subject.membership(in: gid, isMember: isMember) {
    case .member: return group
    case .notMember: return other
    case .unknown: return false
    }
  }
}

/// The mode that stays after someone without privilege has changed a file's data, owner or size.
///
/// Corresponds to what Linux does on write(2): set-user-id goes, and so does set-group-id, unless the group
/// may not execute the file and who changes it is in the group.
package func modeWithoutSetID(_ mode: UInt32, isMember: () -> Bool) -> UInt32 {
  let kept = mode & ~0o4000
  guard mode & 0o2000 != 0 else { return kept }
  return mode & 0o010 == 0 && isMember() ? kept : kept & ~0o2000
}
