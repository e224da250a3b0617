// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// A machine with a few accounts, for tests.
enum Machine {
  private static let users =
    ["root": 0, "anna": 501, "bert": 502, "nobody": 65534, "User 1": 503, "100": 7]
    as [String: UInt32]
  private static let groups =
    ["wheel": 0, "man": 12, "staff": 20, "admin": 80, "everyone": 900, "nobody": 901]
    as [String: UInt32]

  static let names = AccountNames(
    userName: { uid in users.first { $0.value == uid }?.key },
    groupName: { gid in groups.first { $0.value == gid }?.key }, uid: { users[$0] }, gid: { groups[$0] })

  /// Reads an entry that must be right.
  static func entry(_ text: String) throws -> AccessControlEntry {
    try AccessControlEntry(text: text, names: names)
  }

  /// Reads an ACL that must be right; nothing stands for an ACL without entries.
  static func acl(_ lines: String...) throws -> AccessControlList {
    AccessControlList(try lines.map { try entry($0) })
  }

  /// Its lines without numbers, as on a directory.
  static func text(_ acl: AccessControlList?) -> [String]? {
    acl?.entries.map { $0.text(isDirectory: true, names: names) }
  }
}
