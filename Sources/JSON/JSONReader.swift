// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension JSONValue {
  /// Reads a text, from its first byte to its last.
  ///
  /// Strict: UTF-8 without a byte order mark, no halves of surrogate pairs, no comments, nothing behind the
  /// value. Of a key that occurs twice the first counts, as it did for earlier versions.
  package init(reading bytes: [UInt8]) throws(DecodingError) {
    var reader = JSONReader(bytes)
    self = try reader.document()
  }
}

/// Reads JSON; the bytes may be anybody's.
struct JSONReader {
  let bytes: [UInt8]
  var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The byte that is next; nil at the end.
  var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  mutating func document() throws(DecodingError) -> JSONValue {
    guard bytes.count <= JSONText.sizeLimit else { throw error("the text is too long") }
    skipSpace()
    let value = try value(depth: 0)
    skipSpace()
    guard position == bytes.count else { throw error("there is something after the value") }
    return value
  }

  private mutating func value(depth: Int) throws(DecodingError) -> JSONValue {
    switch next {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "{"): return .object(try object(depth: depth + 1))
    case UInt8(ascii: "["): return .array(try array(depth: depth + 1))
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    case nil: throw error("the text ends too early")
    case let byte? where byte == UInt8(ascii: "-") || Self.isDigit(byte): return try number()
    default: throw error("there is no value")
    }
  }

  private mutating func array(depth: Int) throws(DecodingError) -> [JSONValue] {
    try checkDepth(depth)
    position += 1
    var values: [JSONValue] = []
    skipSpace()
    if takes(UInt8(ascii: "]")) { return values }
    while true {
      skipSpace()
      values.append(try value(depth: depth))
      skipSpace()
      if takes(UInt8(ascii: "]")) { return values }
      guard takes(UInt8(ascii: ",")) else { throw error("an array lacks a comma or its end") }
    }
  }

  private mutating func object(depth: Int) throws(DecodingError) -> [String: JSONValue] {
    try checkDepth(depth)
    position += 1
    var fields: [String: JSONValue] = [:]
    skipSpace()
    if takes(UInt8(ascii: "}")) { return fields }
    while true {
      skipSpace()
      guard next == UInt8(ascii: "\"") else { throw error("an object lacks a key") }
      let key = try string()
      skipSpace()
      guard takes(UInt8(ascii: ":")) else { throw error("a key lacks its colon") }
      skipSpace()
      let value = try value(depth: depth)
      if let first = fields.updateValue(value, forKey: key) { fields[key] = first }
      skipSpace()
      if takes(UInt8(ascii: "}")) { return fields }
      guard takes(UInt8(ascii: ",")) else { throw error("an object lacks a comma or its end") }
    }
  }

  private mutating func word(_ word: StaticString, _ value: JSONValue) throws(DecodingError) -> JSONValue {
    let end = position + word.utf8CodeUnitCount
    guard end <= bytes.count,
      word.withUTF8Buffer({ bytes[position..<end].elementsEqual($0) })
    else { throw error("there is no value") }
    position = end
    return value
  }

  private func checkDepth(_ depth: Int) throws(DecodingError) {
    guard depth <= JSONText.depthLimit else { throw error("values are nested too deeply") }
  }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0a || byte == 0x0d || byte == 0x09 { position += 1 }
  }

  /// Takes this byte if it is next.
  mutating func takes(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    position += 1
    return true
  }

  func error(_ reason: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: "\(reason), at byte \(position)"))
  }
}
