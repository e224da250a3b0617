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

  /// Whoever has asked for an update that waits.
  package init(_ requester: WaitingUpdate.Requester) {
    self.init(
      uid: requester.uid, gid: requester.gid, groups: requester.groups,
      mayHaveLeftGroups: requester.mayHaveLeftGroups)
  }

  /// What is noted of them with an update that waits.
  var requester: WaitingUpdate.Requester {
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
