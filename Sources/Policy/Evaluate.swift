// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What a list has to say to a question.
enum Verdict: Equatable, Sendable {
  /// All that was asked is permitted.
  case allow
  /// These of the rights asked for are refused.
  case deny(Rights)
  /// Nothing is refused; about these rights the list says nothing, and something else decides.
  case silent(Rights)
}

extension AccessControlList {
  /// What the list of `object` says to `subject`, who asks for all of `rights`.
  ///
  /// The first entry that settles the question wins, so order counts, and nothing is ever sorted. A permit
  /// takes away from what is still open, and ends the matter when nothing is. A deny counts against all that
  /// was asked, be it permitted by an earlier entry, as long as something else is open. Groups are asked for
  /// only by entries that would matter.
  func verdict(
    on rights: Rights, of object: Object, for subject: Subject, isMember: (_ gid: UInt32) -> Membership
  ) -> Verdict {
    var open = rights
    if open.isEmpty { return .allow }
    for entry in entries where !entry.inheritance.contains(.onlyInherit) {
      let named = entry.rights.expanded
      switch entry.kind {
      case .permit:
        if open.isDisjoint(with: named) { continue }
        guard entry.principal.includes(subject, of: object, isMember: isMember) == .member else { continue }
        open.subtract(named)
        if open.isEmpty { return .allow }
      case .deny:
        let refused = rights.intersection(named)
        if refused.isEmpty { continue }
        // Who may be meant is meant.
        guard entry.principal.includes(subject, of: object, isMember: isMember) != .notMember else {
          continue
        }
        return .deny(refused)
      case .audit, .alarm:
        continue
      }
    }
    return .silent(open)
  }

  /// Whether some caller may be refused one of `rights` by this list.
  ///
  /// What earlier entries permit is not looked at: it is better to be careful too often than once too seldom.
  func mayDeny(_ rights: Rights) -> Bool {
    entries.contains { entry in
      entry.kind == .deny && !entry.inheritance.contains(.onlyInherit) && entry.principal != .nobody
        && !entry.rights.expanded.isDisjoint(with: rights)
    }
  }
}

extension Principal {
  /// Whether `subject` is who is meant in a list of `object`.
  func includes(
    _ subject: Subject, of object: Object, isMember: (_ gid: UInt32) -> Membership
  ) -> Membership {
    switch meaning {
    case .everyone: .member
    case .nobody: .notMember
    case .owner: subject.uid == object.uid ? .member : .notMember
    case .user(let uid): subject.uid == uid ? .member : .notMember
    case .owningGroup: subject.membership(in: object.gid, isMember: isMember)
    case .group(let gid): subject.membership(in: gid, isMember: isMember)
    case .foreign: .unknown
    }
  }
}

extension Subject {
  /// Whether the subject is in a group; the other groups are asked for only if it is not the primary one.
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
