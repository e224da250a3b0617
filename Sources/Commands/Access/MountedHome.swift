// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Policy

/// A user's home in a mounted tree.
enum MountedHome {
  /// Its name in the directory of all homes: the account's, or else the first of the user's; nil if there is
  /// none.
  ///
  /// Only where none has the account's name is any other one looked at: it may be on a disk or a server that
  /// does not answer.
  static func name(of user: UInt32, in users: FD) throws(Errno) -> String? {
    let names = try users.entries().compactMap { String(validating: $0.name, as: UTF8.self) }.filter {
      !$0.begins(with: ".") && $0 != BackupSet.shared
    }
    func isOwn(_ name: String) -> Bool {
      guard let status = try? users.status(of: name) else { return false }
      return status.isDirectory && status.st_uid == user
    }
    if let account = Account.numbered(user)?.name, names.contains(where: { $0.hasSameBytes(as: account) }),
      isOwn(account)
    {
      return account
    }
    return names.inOrder(by: <).first(where: isOwn)
  }
}
