// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension StringProtocol {
  /// Whether both texts are the same bytes, as they must be to name the same file, home or account.
  ///
  /// `==` takes the two spellings of an accented letter for one; the kernel and the database do not.
  package func hasSameBytes(as other: some StringProtocol) -> Bool { utf8.elementsEqual(other.utf8) }
}
