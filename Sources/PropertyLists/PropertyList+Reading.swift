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
  /// check it and those who use what it covers see different things. A list that has more than `values`
  /// values is refused too.
  package init(reading bytes: [UInt8], atMost values: Int = valueLimit) throws(PropertyListError) {
    guard bytes.count <= Self.sizeLimit else { throw PropertyListError("too long") }
    if bytes.starts(with: "bplist".utf8) {
      var reader = try BinaryReader(bytes, atMost: values)
      self = try reader.top()
    } else {
      var reader = try XMLReader(bytes, atMost: values)
      self = try reader.document()
    }
  }
}

extension PropertyList {
  /// Whether it takes more than so many bytes to write all values out, each wherever it stands; with `indent`
  /// for each level that one lies deep.
  ///
  /// A binary list of a megabyte may refer to one long value a million times.
  package func exceeds(_ bytes: Int, indent: Int = 0) -> Bool {
    var room = bytes
    return !takes(from: &room, indent: indent, level: 0)
  }

  /// What a value takes besides its text: a number, a line.
  private static let valueBytes = 8

  private func takes(from room: inout Int, indent: Int, level: Int) -> Bool {
    room -= Self.valueBytes + indent * level
    switch self {
    case .string(let text): room -= text.utf8.count
    case .data(let bytes): room -= bytes.count
    case .array(let values):
      for value in values where !value.takes(from: &room, indent: indent, level: level + 1) { return false }
    case .dictionary(let dictionary):
      for entry in dictionary.entries {
        room -= Self.valueBytes + entry.key.utf8.count
        guard entry.value.takes(from: &room, indent: indent, level: level + 1) else { return false }
      }
    case .integer, .unsigned, .real, .boolean, .date, .uid: break
    }
    return room >= 0
  }
}
