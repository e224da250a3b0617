// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Why a list can't be taken over from another form, or not be written in it.
///
/// The texts complete the sentence "the list can't be read: ..."; entries are counted from 0, as `ls -le`
/// does.
package enum MalformedList: Error, Equatable, Sendable {
  /// The bytes are not a list of that form.
  case malformed(String)
  /// More than `AccessControlList.maximumCount`.
  case tooManyEntries
  /// A proper list, but the other side has no way to say it; nothing is left out silently.
  case inexpressible(String)
}
