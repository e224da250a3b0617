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
  package static func isOne(_ object: FD) -> Bool {
    var target = [UInt8](repeating: 0, count: prefix.utf8.count)
    let count = target.withUnsafeMutableBytes { bytes in try? object.readLink(into: bytes) }
    return count == target.count && target.elementsEqual(prefix.utf8)
  }

  /// Where a name in `/Users` says that its home is; nil if it is none of these links.
  static func source(of name: String, in users: FD) -> String? {
    var target = [UInt8](repeating: 0, count: 4096)
    guard let link = try? users.child(name) else { return nil }
    let count = target.withUnsafeMutableBytes { bytes in try? link.fd.readLink(into: bytes) }
    let text = String(decoding: target.prefix(count ?? 0), as: UTF8.self)
    return text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil
  }

  /// Whether a name in `/Users` is that of one.
  static func isOne(_ name: some NameText, in users: FD) -> Bool {
    guard let object = try? users.child(name) else { return false }
    return isOne(object.fd)
  }
}
