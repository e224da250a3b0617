// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Whether some caller may be allowed to append to a file and not to write elsewhere in it.
///
/// Mode bits have one word for both. Entries that speak of one of the two make the difference, and so do
/// flags; like all questions about whoever may ask, this one errs on the careful side.
package func mayGrantAppendAlone(_ object: Object) -> Bool {
  if !object.flags.isDisjoint(with: .appendOnly) { return true }
  guard case .list(let list) = object.acl else { return false }
  return list.entries.contains { entry in
    guard entry.kind == .permit || entry.kind == .deny, !entry.inheritance.contains(.onlyInherit) else {
      return false
    }
    let rights = entry.rights.expanded
    return rights.contains(.append) != rights.contains(.write)
  }
}
