// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Why something stays when the daemon removes a user's tree for them.
package enum KeptReason: Hashable, Sendable {
  /// It belongs to someone else.
  case owner(UInt32)
  /// These flags stand against it.
  case flags(FileFlags)
  /// It is filled as fast as it is emptied.
  case changing
  /// The filesystem below does not let it go.
  case refused
}

/// Tells why an object that is the user's to remove all the same stays; nil if it goes.
///
/// The daemon asks no mode and no list, since their owner could change both. It takes away no flag, not even
/// one that its owner could, and nothing that belongs to anybody else.
package func reasonToKeep(
  uid: UInt32, kind: Object.Kind, flags: FileFlags, whenRemovedFor owner: UInt32
) -> KeptReason? {
  if uid != owner { return .owner(uid) }
  let rights: Rights = kind == .directory ? [.delete, .deleteChild] : .delete
  return flags.refuse(rights, to: kind) ? .flags(flags) : nil
}
