// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// How people and groups are called on this machine; nil where there is no such name or number.
package struct AccountNames: Sendable {
  package let userName: @Sendable (UInt32) -> String?
  package let groupName: @Sendable (UInt32) -> String?
  package let uid: @Sendable (String) -> UInt32?
  package let gid: @Sendable (String) -> UInt32?

  package init(
    userName: @escaping @Sendable (UInt32) -> String?, groupName: @escaping @Sendable (UInt32) -> String?,
    uid: @escaping @Sendable (String) -> UInt32?, gid: @escaping @Sendable (String) -> UInt32?
  ) {
    self.userName = userName
    self.groupName = groupName
    self.uid = uid
    self.gid = gid
  }
}
