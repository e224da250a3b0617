// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
package import LinuxIO

/// What a store has in the place of a home that lies outside of it: a link that leads nowhere and says where
/// the home is.
///
/// So no program that walks through the store takes anything there for the home.
package enum HomeLink {
  private static let prefix = "insula-home:"

  static func make(_ name: String, to source: String, in users: FD) throws(Errno) {
    try users.makeSymlink(name, to: prefix + source)
  }

  /// Whether an object is one that is named, but not opened.
  package static func isOne(_ object: FD) -> Bool { source(of: object) != nil }

  /// Whether a name in `/Users` is that of one.
  static func isOne(_ name: some NameText, in users: FD) -> Bool { source(of: name, in: users) != nil }

  /// Where a name in `/Users` says that its home is; nil if it is none of these links.
  static func source(of name: some NameText, in users: FD) -> String? {
    guard let object = try? users.child(name) else { return nil }
    return source(of: object.fd)
  }

  private static func source(of object: FD) -> String? {
    guard let target = try? object.linkTarget(), target.starts(with: prefix.utf8) else { return nil }
    return String(decoding: target.dropFirst(prefix.utf8.count), as: UTF8.self)
  }
}
