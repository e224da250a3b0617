// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension StringProtocol {
  /// Whether both texts are the same bytes, as they must be to name the same file, home or account.
  ///
  /// `==` takes the two spellings of an accented letter for one; the kernel and the database do not.
  package func hasSameBytes(as other: some StringProtocol) -> Bool { utf8.elementsEqual(other.utf8) }
}

/// A path or a name as a key, or among others: two are one if their bytes are the same.
///
/// A set or a dictionary of plain texts has one place for two homes whose names only look alike.
package struct ExactText: Hashable, Comparable, Sendable {
  package let text: String

  package init(_ text: String) { self.text = text }

  package static func == (one: ExactText, other: ExactText) -> Bool { one.text.hasSameBytes(as: other.text) }

  package static func < (one: ExactText, other: ExactText) -> Bool {
    one.text.utf8.lexicographicallyPrecedes(other.text.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    // Where a text ends that is followed by another one.
    hasher.combine(0xff as UInt8)
  }
}
