// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The verdict of an ACL on the requested rights.
enum Verdict: Equatable, Sendable {
  /// All that was asked is permitted.
  case allow
  /// These of the rights asked for are refused.
  case deny(Rights)
  /// Nothing is denied.
  ///
  /// The ACL is silent about these rights, so the next rule decides.
  case silent(Rights)
}

extension AccessControlList {
  /// Evaluates this ACL of `object` for `caller`, who requests all of `rights`.
  ///
  /// Entries are evaluated in stored order, and the first that decides ends the evaluation. A permit entry
  /// removes its rights from those still open, and allows the request when none is left. As long as a right
  /// is open, a deny entry refuses the request if it names any requested right, even one that an earlier
  /// entry has permitted. Groups are looked up only for entries that could change the answer.
  func verdict(
    on rights: Rights, of object: Object, for caller: Credentials, isMember: (_ gid: UInt32) -> Membership
  ) -> Verdict {
    var open = rights
    if open.isEmpty { return .allow }
    for entry in entries where !entry.inheritance.contains(.onlyInherit) {
      let named = entry.rights.expanded
      switch entry.kind {
      case .permit:
        if open.isDisjoint(with: named) { continue }
        guard entry.principal.includes(caller, of: object, isMember: isMember) == .member else { continue }
        open.subtract(named)
        if open.isEmpty { return .allow }
      case .deny:
        let refused = rights.intersection(named)
        if refused.isEmpty { continue }
        // Who may be meant is meant.
        guard entry.principal.includes(caller, of: object, isMember: isMember) != .notMember else {
          continue
        }
        return .deny(refused)
      case .audit, .alarm:
        continue
      }
    }
    return .silent(open)
  }

  /// Whether some caller may be refused one of `rights` by this ACL.
  ///
  /// Earlier permit entries are not considered, so the answer errs on the safe side.
  func mayDeny(_ rights: Rights) -> Bool {
    entries.contains { entry in
      entry.kind == .deny && !entry.inheritance.contains(.onlyInherit) && entry.principal != .nobody
        && !entry.rights.expanded.isDisjoint(with: rights)
    }
  }
}

extension Principal {
  /// Whether `caller` is who is meant in an ACL of `object`.
  func includes(
    _ caller: Credentials, of object: Object, isMember: (_ gid: UInt32) -> Membership
  ) -> Membership {
    switch meaning {
    case .everyone: .member
    case .nobody: .notMember
    case .owner: object.isOwned(by: caller) ? .member : .notMember
    case .user(let uid): caller.uid == uid ? .member : .notMember
    case .owningGroup: caller.membership(in: object.gid, isMember: isMember)
    case .group(let gid): caller.membership(in: gid, isMember: isMember)
    case .foreign: .unknown
    }
  }
}

extension Credentials {
  /// Whether the caller is in a group.
  ///
  /// Supplementary groups are looked up only if it is not the primary one.
  func membership(in group: UInt32, isMember: (_ gid: UInt32) -> Membership) -> Membership {
    gid == group ? .member : isMember(group)
  }
}

extension Rights {
  private static let generic: Rights = [.genericAll, .genericExecute, .genericWrite, .genericRead]
  private static let readGroup: Rights = [.read, .readAttributes, .readExtended, .readSecurity]
  private static let writeGroup: Rights = [
    .write, .append, .delete, .deleteChild, .writeAttributes, .writeExtended, .writeSecurity,
  ]

  /// The rights that are meant: what generic ones stand for is in their place.
  ///
  /// None of them stands for the right to change the owner.
  var expanded: Rights {
    if isDisjoint(with: Self.generic) { return self }
    var meant = subtracting(Self.generic)
    if !isDisjoint(with: [.genericRead, .genericAll]) { meant.formUnion(Self.readGroup) }
    if !isDisjoint(with: [.genericWrite, .genericAll]) { meant.formUnion(Self.writeGroup) }
    if !isDisjoint(with: [.genericExecute, .genericAll]) { meant.insert(.execute) }
    return meant
  }
}
