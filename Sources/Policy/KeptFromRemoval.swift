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

/// Tells why an object stays although its user may remove it; nil if it is removed.
///
/// Modes and ACLs are not checked, since the owner could change both. No flag is cleared, even if its owner
/// could clear it, and nothing that belongs to another user is removed.
package func reasonToKeep(
  uid: UInt32, kind: Object.Kind, flags: FileFlags, whenRemovedFor owner: UInt32
) -> KeptReason? {
  if uid != owner { return .owner(uid) }
  let rights: Rights = kind == .directory ? [.delete, .deleteChild] : .delete
  return flags.refuse(rights, to: kind) ? .flags(flags) : nil
}
