// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Why bytes are not a property list, or a value can't be written as one.
package struct PropertyListError: Error, Equatable, Sendable {
  /// For people.
  package let reason: String
  /// The byte at which it showed; in UTF-16 text, of the text as UTF-8.
  package let position: Int

  package init(_ reason: String, at position: Int = 0) {
    self.reason = reason
    self.position = position
  }
}

extension PropertyListError: CustomStringConvertible {
  package var description: String { position == 0 ? reason : "\(reason), at byte \(position)" }
}

extension PropertyList {
  /// How long a property list may be in bytes; a file that is longer is not read.
  package static let sizeLimit = 64 << 20
  /// How deep containers may lie in each other.
  package static let depthLimit = 128
  /// How many values a list may have when all are written out, those that a binary list refers to more than
  /// once too.
  package static let valueLimit = 4_000_000

  /// Reads either form.
  ///
  /// Strict: what two readers could read in two ways is refused, since a signature is no good if those who
  /// check it and those who use what it covers see different things. Of a binary list that has more than
  /// `values` values, nothing is read either.
  package init(reading bytes: [UInt8], atMost values: Int = valueLimit) throws(PropertyListError) {
    guard bytes.count <= Self.sizeLimit else { throw PropertyListError("too long") }
    if bytes.starts(with: "bplist".utf8) {
      var reader = try BinaryReader(bytes, atMost: values)
      self = try reader.top()
    } else {
      var reader = try XMLReader(bytes)
      self = try reader.document()
    }
  }
}
