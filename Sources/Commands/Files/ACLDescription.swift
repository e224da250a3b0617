// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// An ACL for programs.
struct ACLDescription: Encodable {
  struct Entry: Encodable {
    let index: Int
    let principal: String
    let uuid: String
    let verb: String
    let inherited: Bool
    /// Rights and inheritance, as they are printed.
    let words: [String]
  }

  let file: String
  /// Missing if there is no ACL, which is not the same as an empty one.
  let entries: [Entry]?
  let canonical: Bool?

  init(_ file: String, _ acl: AccessControlList?, isDirectory: Bool, _ names: AccountNames) {
    self.file = file
    canonical = acl?.isCanonical
    entries = acl?.entries.enumerated().map { index, entry in
      Entry(
        index: index, principal: entry.principal.text(names: names), uuid: entry.principal.uuid,
        verb: entry.kind.verb, inherited: entry.inheritance.contains(.inherited),
        words: entry.words(isDirectory: isDirectory))
    }
  }
}
