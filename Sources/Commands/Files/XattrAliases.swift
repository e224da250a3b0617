// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The attributes through which ACLs and flags of a mounted file are read and changed.
struct XattrAliases: Equatable, Sendable {
  /// The ACL, in Apple's binary form.
  let acl: String
  /// The flags, as words.
  let flags: String
  /// What else of them is among the attributes, for programs that copy those.
  let copies: [String]

  /// Those of an insula mount.
  static let mounted = XattrAliases(
    acl: "system.insula.acl", flags: "system.insula.flags",
    copies: ["user.com.apple.system.Security", "system.nfs4_acl", "user.org.insula.flags"])

  /// Whether an attribute is one of these, and not one that somebody has given to the file.
  func contains(_ attribute: String) -> Bool {
    attribute == acl || attribute == flags || copies.contains(attribute)
  }
}
