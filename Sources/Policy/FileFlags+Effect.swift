// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension FileFlags {
  /// Those that stand against something.
  package static let restraining: FileFlags = [
    .userImmutable, .systemImmutable, .userAppend, .systemAppend, .noUnlink,
  ]
  private static let growth: Rights = [.append, .writeExtended]
  private static let directoryGrowth: Rights = [.addFile, .addSubdirectory, .writeExtended]

  /// Whether flags stand against `rights` to an object of this kind.
  package func refuse(_ rights: Rights, to kind: Object.Kind) -> Bool {
    if isDisjoint(with: Self.restraining) { return false }
    var changes = rights.intersection(.modifying)
    // What is written to a fifo, a socket or a device goes through it and leaves it as it was.
    if kind == .special { changes.subtract([.write, .append]) }
    if changes.isEmpty { return false }
    if !isDisjoint(with: .immutable) { return true }
    if contains(.noUnlink), changes.contains(.delete) { return true }
    if isDisjoint(with: .appendOnly) { return false }
    return !changes.isSubset(of: kind == .directory ? Self.directoryGrowth : Self.growth)
  }
}

/// Tells whether `caller` may give `object` these flags in place of those that it has.
///
/// Only the flags that change are judged. The flags that the object has do not forbid the change; otherwise
/// none could ever be cleared.
package func decideFlagChange(
  to flags: FileFlags, on object: Object, by caller: Credentials, isMember: (_ gid: UInt32) -> Membership
) -> Decision {
  if object.zone.isReadOnly { return .deny(.readOnly) }
  if object.zone.isUnchangeable || !object.reach.contains(.write) { return .deny(.place) }
  let changed = flags.symmetricDifference(object.flags)
  if changed.isEmpty { return .allow }
  let settable: FileFlags =
    caller.isSuperuser ? .ownerSettable.union(.rootSettable) : .ownerSettable
  guard changed.isSubset(of: settable) else { return .deny(.ownership) }
  if caller.isSuperuser { return .allow }
  return decideByACLAndMode(.writeSecurity, on: object, by: caller, isMember: isMember)
}
