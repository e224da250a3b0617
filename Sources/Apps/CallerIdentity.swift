// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

package import LinuxIO
package import Policy
package import Store

/// The identity of the caller who requests an installation or removal, as values that are read once.
package struct CallerIdentity: Equatable, Sendable {
  package let uid: UInt32
  package let gid: UInt32
  /// The supplementary groups.
  package let groups: [UInt32]
  /// Whether there may be others that they have given up, to pass by what those are denied.
  private let mayHaveLeftGroups: Bool

  package init(uid: UInt32, gid: UInt32, groups: [UInt32], mayHaveLeftGroups: Bool = false) {
    self.uid = uid
    self.gid = gid
    self.groups = groups
    self.mayHaveLeftGroups = mayHaveLeftGroups
  }

  /// The user who requested an update that waits, with the rights that they have today.
  ///
  /// A group counts if the request had it and the account is a member now. A group that the account has
  /// joined since allows nothing, since the request did not have it, but what the group is denied is denied.
  /// Without an account no group counts.
  package init(_ requester: WaitingUpdate.Requester) {
    // Neither depends on groups: root, and the owner of a store in rootless mode.
    guard requester.uid != 0, requester.uid != ProcessID.user else {
      self.init(
        uid: requester.uid, gid: requester.gid, groups: requester.groups,
        mayHaveLeftGroups: requester.mayHaveLeftGroups)
      return
    }
    let account = Account.numbered(requester.uid)
    let current = Set(account.map { [$0.gid] + $0.groups } ?? [])
    let kept = ([requester.gid] + requester.groups).filter(current.contains)
    self.init(
      uid: requester.uid, gid: kept.first ?? Self.noGroup, groups: Array(kept.dropFirst()),
      mayHaveLeftGroups: requester.mayHaveLeftGroups || !current.isSubset(of: kept))
  }

  /// The number that no group can have.
  private static let noGroup = UInt32.max

  /// What is noted of them with an update that waits.
  package var requester: WaitingUpdate.Requester {
    WaitingUpdate.Requester(uid: uid, gid: gid, groups: groups, mayHaveLeftGroups: mayHaveLeftGroups)
  }

  /// The identity of this process.
  package static var ourselves: CallerIdentity {
    CallerIdentity(uid: ProcessID.user, gid: ProcessID.group, groups: ProcessID.groups)
  }

  package var credentials: Credentials { Credentials(uid: uid, gid: gid) }

  package func membership(in group: UInt32) -> Membership {
    if group == gid || groups.contains(group) { return .member }
    return mayHaveLeftGroups ? .unknown : .notMember
  }

  /// As whom a bundle is read; nil where that is this process itself.
  ///
  /// A daemon of root's must not read for others what they may not read themselves.
  package var reader: ReaderIdentity? {
    guard ProcessID.user == 0, uid != 0 else { return nil }
    return ReaderIdentity(uid: uid, gid: gid, groups: groups)
  }
}
