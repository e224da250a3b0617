// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Values as JSON, the text of RFC 8259.
package enum JSONText {
  /// How long a text may be in bytes.
  package static let sizeLimit = 4 << 20
  /// How deep arrays and objects may lie in each other.
  package static let depthLimit = 128
  /// How many characters a number may have.
  package static let numberLimit = 1024

  /// How a text looks.
  package enum Layout: Sendable {
    /// In one line; slashes are escaped, as in what earlier versions have written.
    case compact
    /// An entry to a line, for people too.
    case pretty
  }

  /// The text of a value, with the keys of each object sorted.
  ///
  /// Throws an `EncodingError` for what JSON can't represent: a number that is infinite or none.
  package static func encode(_ value: some Encodable, _ layout: Layout = .compact) throws -> [UInt8] {
    var writer = JSONWriter(layout)
    writer.write(try JSONValue(encoding: value))
    return writer.bytes
  }

  /// Reads a value; a `DecodingError` says where it is damaged, or is something else than what is expected.
  package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws -> Value {
    try JSONValue(reading: bytes).decode(type)
  }
}
