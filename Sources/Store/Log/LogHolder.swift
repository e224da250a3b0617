// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO

/// Whose a number's part of a log is: `state/log/NUMBER.holder`.
///
/// What the account of the number is called is noted with its first entry. When another account has the
/// number, what is there stays, and is root's alone: the account that it is about may live under another
/// number. A name proves nothing by itself, so nobody gets it there either.
struct LogHolder: Equatable {
  /// Empty if the account is none of this machine's.
  var name: String
  /// The last entry that is not the account's.
  var since: UInt64

  static let suffix = ".holder"

  /// What is noted of a number.
  init?(of user: UInt32, in directory: FD) { self.init("\(user)\(Self.suffix)", in: directory) }

  init?(_ file: String, in directory: FD) {
    guard let bytes = try? directory.contents(of: file, limit: 1 << 12),
      let space = bytes.firstIndex(of: UInt8(ascii: " ")),
      let since = UInt64(String(decoding: bytes[..<space], as: UTF8.self)), since < 1 << 62
    else { return nil }
    self.since = since
    name = String(decoding: bytes[(space + 1)...], as: UTF8.self)
  }

  init(name: String, since: UInt64) {
    self.name = name
    self.since = since
  }

  /// Whether the account is the one that has a number now, as far as that is known.
  ///
  /// A login can be called otherwise: the home in the store that has its former name says so.
  func has(_ user: UInt32, _ accounts: LocalAccounts, _ store: Store) -> Bool {
    guard accounts.name(of: user) != nil else { return true }
    if let number = accounts.id(of: name) { return number == user }
    guard (try? Homes.checkName(name)) != nil, let users = try? store.tree.openDirectory("Users"),
      let home = try? users.fd.status(of: name)
    else { return false }
    return home.isDirectory && home.st_uid == user
  }

  func write(for user: UInt32, in directory: FD) throws(Errno) {
    let temporary = ".holder"
    if directory.has(temporary) { try directory.remove(temporary, directory: false) }
    let new = try directory.open(temporary, O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    try new.fd.writeAll(Array("\(since) \(name)".utf8))
    try directory.rename(temporary, to: directory, "\(user)\(Self.suffix)", flags: 0)
  }
}
