// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Tells whether `subject` may do all of `rights` to `object`.
///
/// Total and pure: every combination has an answer, and nothing but the arguments decides. The order is that of
/// the reasons: seal, rule of the place, mode bits. `isMember` is asked at most once, and only if the answer hangs on it.
package func decide(
  _ rights: Rights, on object: Object, by subject: Subject, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  if object.zone.isSealed, !rights.isDisjoint(with: .modifying) { return .deny(.sealed) }
  if object.zone.isSkeleton, rights.contains(.delete) { return .deny(.place) }
  if subject.isSuperuser { return decideForSuperuser(rights, on: object) }

  if !rights.isDisjoint(with: [.writeSecurity, .takeOwnership]), subject.uid != object.uid {
    return .deny(.ownership)
  }
  let needed = modeBits(for: rights, owner: subject.uid == object.uid)
  if needed == 0 { return .allow }
  let granted = grantedBits(object, subject, needed: needed, isMember: isMember)
  return granted & needed == needed ? .allow : .deny(.mode)
}

/// Root passes the mode bits, but runs only what someone may run.
private func decideForSuperuser(_ rights: Rights, on object: Object) -> Decision {
  guard rights.contains(.execute), !object.isDirectory, object.mode & 0o111 == 0 else { return .allow }
  return .deny(.mode)
}

/// The rwx bits that stand for `rights`.
private func modeBits(for rights: Rights, owner: Bool) -> UInt32 {
  var bits: UInt32 = 0
  if !rights.isDisjoint(with: [.read, .readExtended]) { bits |= 0o4 }
  if !rights.isDisjoint(with: [.write, .append, .deleteChild, .writeExtended]) { bits |= 0o2 }
  if rights.contains(.execute) { bits |= 0o1 }
  // The owner may always set the times; others may set them to now if they may write.
  if rights.contains(.writeAttributes), !owner { bits |= 0o2 }
  return bits
}

/// The one class of bits that counts for the subject, without asking about groups where no answer could matter.
private func grantedBits(
  _ object: Object, _ subject: Subject, needed: UInt32, isMember: (_ gid: UInt32) -> Membership
) -> UInt32 {
  if subject.uid == object.uid { return object.mode >> 6 & 0o7 }
  let group = object.mode >> 3 & 0o7
  let other = object.mode & 0o7
  if group & needed == other & needed { return other }
  let member = subject.gid == object.gid || isMember(object.gid) == .member
  return member ? group : other
}

/// Whether everyone may walk through a directory, so that what lies in it may be cached for all.
package func isSearchableByAll(_ object: Object) -> Bool { object.mode & 0o111 == 0o111 }

/// The mode that stays after someone without privilege has changed a file's data, owner or size.
///
/// Corresponds to what Linux does on write(2): set-user-id goes, set-group-id goes where the group may execute.
package func modeWithoutSetID(_ mode: UInt32) -> UInt32 {
  var kept = mode & ~0o4000
  if mode & 0o010 != 0 { kept &= ~0o2000 }
  return kept
}
