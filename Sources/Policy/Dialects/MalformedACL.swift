// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Why an ACL can't be converted from another form, or to it.
///
/// The texts complete the sentence "the ACL can't be read: ..."; entries are counted from 0, as `ls -le`
/// does.
package enum MalformedACL: Error, Equatable, Sendable {
  /// The bytes are not an ACL of that form.
  case malformed(String)
  /// More than `AccessControlList.maximumCount`.
  case tooManyEntries
  /// A valid ACL that the other form can't express.
  ///
  /// Nothing is dropped silently.
  case inexpressible(String)
}
