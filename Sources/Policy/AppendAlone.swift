// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Whether the ACL or the flags could allow some caller to append to a file but not to overwrite it.
///
/// Mode bits do not distinguish the two, but ACL entries and flags do. Like every answer that must hold for
/// all callers, this one errs on the safe side.
package func mayGrantAppendAlone(_ object: Object) -> Bool {
  if !object.flags.isDisjoint(with: .appendOnly) { return true }
  guard case .acl(let acl) = object.acl else { return false }
  return acl.entries.contains { entry in
    guard entry.kind == .permit || entry.kind == .deny, !entry.inheritance.contains(.onlyInherit) else {
      return false
    }
    let rights = entry.rights.expanded
    return rights.contains(.append) != rights.contains(.write)
  }
}
