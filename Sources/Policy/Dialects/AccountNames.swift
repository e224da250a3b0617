// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What the users and groups of a machine are called.
///
/// Policy knows numbers only. Text forms of ACLs use these functions to translate names.
package struct AccountNames: Sendable {
  package let userName: @Sendable (UInt32) -> String?
  package let groupName: @Sendable (UInt32) -> String?
  package let uid: @Sendable (String) -> UInt32?
  package let gid: @Sendable (String) -> UInt32?
  /// Whether `name@domain` is the account `name` of this machine.
  package let isOwnDomain: @Sendable (String) -> Bool

  package init(
    userName: @escaping @Sendable (UInt32) -> String?, groupName: @escaping @Sendable (UInt32) -> String?,
    uid: @escaping @Sendable (String) -> UInt32?, gid: @escaping @Sendable (String) -> UInt32?,
    isOwnDomain: @escaping @Sendable (String) -> Bool = { _ in false }
  ) {
    self.userName = userName
    self.groupName = groupName
    self.uid = uid
    self.gid = gid
    self.isOwnDomain = isOwnDomain
  }
}
