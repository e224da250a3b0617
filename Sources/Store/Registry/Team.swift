// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// Whose an app is: a text that the signer's certificate has, under a root.
///
/// Whoever has a root can write any text, so neither of them alone tells one team from another.
package struct Team: Codable, Hashable, Sendable {
  package let text: String
  /// The digest of the root's certificate; nil where an earlier version did not note it.
  package let root: [UInt8]?

  package init(_ text: String, root: [UInt8]?) {
    self.text = text
    self.root = root
  }

  // Byte by byte, as the database compares: texts that look alike can be two.

  package static func == (one: Team, other: Team) -> Bool {
    one.text.hasSameBytes(as: other.text) && one.root == other.root
  }

  package func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
    hasher.combine(root)
  }

  /// As people tell it from another one of the same name.
  package var words: String {
    guard let root else { return "\(text) (of a root that is not known)" }
    return "\(text) (root \(Self.digits(of: root)))"
  }

  /// The first digits of a root's digest, by which 'insula trust list' shows it too.
  static func digits(of root: [UInt8]) -> String {
    root.prefix(8).asHexadecimal
  }
}
