// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The order of the reasons, and who passes which:
//
// 0. the view is another user's  root
//    consent is needed           nobody
// 1. the seal of the place       nobody
// 2. a rule of the place         nobody
// 3. flags                       nobody
// 4. the ACL, then the mode      root (who runs only what someone may run)
//
// What takes more than rights to one object (a new name, a mode, an owner, what was granted) is in the other
// `Decide+...` files; the gate of the volume calls all of them and makes errnos of the reasons.
//
// A deletion is judged by the object and its directory, everything else by the object alone.

/// Tells whether `caller` may do all of `rights` to `object`, which lies in `parent`.
///
/// The function is total and pure: every combination has an answer, which depends on the arguments only.
/// `parent` counts only where `rights` contain `delete`; without one, only the object's own ACL can allow
/// that. `isMember` is called only if the answer depends on it, and never for the caller's primary group.
package func decide(
  _ rights: Rights, on object: Object, in parent: Object? = nil, by caller: Credentials,
  isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  if !caller.mayUseView { return .deny(.mode) }
  let rights = rights.expanded
  if object.asks(about: rights) || rights.contains(.delete) && parent?.reach.contains(.asks) == true {
    return .deny(.consent)
  }
  if !rights.isDisjoint(with: .modifying),
    let refusal = refusalForAll(of: rights, on: object, in: parent, by: caller)
  {
    return .deny(refusal)
  }
  // As on a filesystem from which nothing is run.
  if rights.contains(.execute), !object.isDirectory, !object.reach.contains(.execute) { return .deny(.mode) }
  if caller.isSuperuser { return decideForSuperuser(rights, on: object) }

  if rights.contains(.delete),
    let refusal = refusalToDelete(object, in: parent, by: caller, isMember: isMember)
  {
    return .deny(refusal)
  }
  let others = rights.subtracting([.delete, .link])
  if others.isEmpty { return .allow }
  return decideByACLAndMode(rights.subtracting(.link), on: object, by: caller, isMember: isMember)
}

/// Tells whether a program that belongs to an installed app may be started where it is found.
///
/// Outside of a view, a sandboxed app would have all that its user has. This is no boundary: who may read the
/// program can copy it, or have an interpreter read it. It keeps people from starting it so by mistake.
package func decideStart(inView: Bool, isSandboxed: Bool) -> Decision {
  isSandboxed && !inView ? .deny(.sandbox) : .allow
}

/// What stands against a change whoever asks for it, root included.
private func refusalForAll(
  of rights: Rights, on object: Object, in parent: Object?, by caller: Credentials
) -> Denial? {
  let isDelete = rights.contains(.delete)
  if object.zone.isReadOnly { return .readOnly }
  if isDelete, let parent, parent.zone.isReadOnly { return .readOnly }
  if !object.mayBeReached(with: rights, in: parent) || object.zone.isFixture { return .place }
  if object.isHeldAsDelivery(against: rights) { return .place }
  if isDelete, object.zone.isSkeleton || parent?.zone.keeps(object.zone) == true { return .place }
  // Under another name what is private would be a part of what is around it.
  if isDelete, object.reach.contains(.keepsItsPlace) { return .place }
  if object.isDirectory, object.zone.hasFixedNames,
    !rights.isDisjoint(with: [.addFile, .addSubdirectory, .deleteChild])
  {
    return .place
  }
  if object.refusesByFlags(rights, by: caller) { return .flags }
  if isDelete, let parent, parent.refusesByFlags(.deleteChild, by: caller) { return .flags }
  return nil
}

extension Object {
  /// Whether only its user's consent makes any of these rights the app's.
  ///
  /// That there is such a directory can be found out, and it can be passed through, to what was granted in
  /// it.
  fileprivate func asks(about rights: Rights) -> Bool {
    reach.contains(.asks) && !rights.isSubset(of: [.search, .readAttributes, .readSecurity])
  }

  /// Whether flags stand against it.
  fileprivate func refusesByFlags(_ rights: Rights, by caller: Credentials) -> Bool {
    guard let arriving, arriving.user == caller.uid else { return flags.refuse(rights, to: kind) }
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

  /// Whether it is an Inbox, from which objects can only be removed, or a delivered object, which can only be
  /// read and moved away.
  fileprivate func isHeldAsDelivery(against rights: Rights) -> Bool {
    guard zone.isDelivery else { return false }
    // Only a directory is an Inbox. What has come there otherwise under its name is nothing to keep.
    let mayLose: Rights = zone == .inbox && isDirectory ? .deleteChild : [.delete, .deleteChild]
    return !rights.intersection(.modifying).isSubset(of: mayLose)
  }
}

/// Root passes ACLs and modes, but runs only what someone may run.
private func decideForSuperuser(_ rights: Rights, on object: Object) -> Decision {
  guard rights.contains(.execute), !object.isDirectory, object.mode & 0o111 == 0 else { return .allow }
  return .deny(.mode)
}

/// Why an object may not be removed or renamed.
///
/// Its own ACL is evaluated first and is final where it says anything. But another ordinary user's ACL does
/// not keep an object in the caller's own directory.
private func refusalToDelete(
  _ object: Object, in parent: Object?, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Denial? {
  switch object.verdict(on: .delete, for: caller, isMember: isMember) {
  case .allow: return nil
  case .deny:
    let isStrangers = !object.isOwned(by: caller) && object.uid != 0
    guard isStrangers, let parent, parent.isOwned(by: caller) else { return .acl }
  case .silent: break
  }
  guard let parent else { return .mode }
  switch parent.verdict(on: .deleteChild, for: caller, isMember: isMember) {
  case .allow: return nil
  case .deny: return .acl
  case .silent: break
  }
  guard parent.grants(0o2, to: caller, isMember: isMember) else { return .mode }
  let isSticky = parent.mode & 0o1000 != 0
  if isSticky, !object.isOwned(by: caller), !parent.isOwned(by: caller) { return .sticky }
  return nil
}

/// What the ACL and the mode say.
///
/// `delete` was already decided if it is among the rights. It is still passed to the ACL, whose answer
/// depends on all requested rights together; no mode bit stands for it.
func decideByACLAndMode(
  _ rights: Rights, on object: Object, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  let isOwner = object.isOwned(by: caller)
  var asked = rights
  // The owner, and whoever is about to become the owner, can always change the object's security.
  if isOwner || asked.contains(.takeOwnership) { asked.remove(.writeSecurity) }
  if asked.isEmpty { return .allow }

  var open: Rights
  switch object.verdict(on: asked, for: caller, isMember: isMember) {
  case .allow: return .allow
  case .deny(let refused): return .deny(refused.isDisjoint(with: .ownership) ? .acl : .ownership)
  case .silent(let rest): open = rest
  }
  open.remove(.delete)
  // The owner sets the times, unless the ACL has just said no.
  if isOwner { open.remove(.writeAttributes) }
  if !open.isDisjoint(with: .ownership) { return .deny(.ownership) }
  return object.grants(modeBits(for: open), to: caller, isMember: isMember) ? .allow : .deny(.mode)
}

/// The rwx bits that stand for what no ACL has said anything about.
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
  /// The verdict of the object's ACL.
  ///
  /// No ACL is silent, and a damaged one refuses everything.
  fileprivate func verdict(
    on rights: Rights, for caller: Credentials, isMember: (_ gid: UInt32) -> Membership
  ) -> Verdict {
    switch acl {
    case .none: .silent(rights)
    case .damaged: .deny(rights)
    case .acl(let acl): acl.verdict(on: rights, of: self, for: caller, isMember: isMember)
    }
  }

  /// Whether the one class of mode bits that counts for the caller has all that is needed.
  ///
  /// Groups are not looked up if both classes give the same answer. If membership is unknown, the caller gets
  /// only what both classes allow.
  fileprivate func grants(
    _ needed: UInt32, to caller: Credentials, isMember: (_ gid: UInt32) -> Membership
  ) -> Bool {
    if isOwned(by: caller) { return mode >> 6 & needed == needed }
    let group = mode >> 3 & needed == needed
    let other = mode & needed == needed
    if group == other { return group }
    switch caller.membership(in: gid, isMember: isMember) {
    case .member: return group
    case .notMember: return other
    case .unknown: return false
    }
  }
}
