// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension JSONValue {
  /// Makes a value of another type of this one.
  package func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try ValueDecoder(value: self, path: .start).decode(type)
  }
}

/// Decodes one value.
struct ValueDecoder: Decoder {
  let value: JSONValue
  let path: CodingPath

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .object(let fields) = value else { throw mismatch([String: Any].self) }
    return KeyedDecodingContainer(KeyedValueDecoder(fields: fields, path: path))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .array(let values) = value else { throw mismatch([Any].self) }
    return UnkeyedValueDecoder(values: values, path: path)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  /// What is there is something else; where it is null, nothing is there.
  fileprivate func mismatch(_ type: any Any.Type) -> DecodingError {
    let context = DecodingError.Context(
      codingPath: codingPath, debugDescription: "\(type) is expected, and there is \(value.kind)")
    return value == .null ? .valueNotFound(type, context) : .typeMismatch(type, context)
  }
}

extension ValueDecoder: SingleValueDecodingContainer {
  func decodeNil() -> Bool { value == .null }

  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try scalar(type) ?? type.init(from: self)
  }

  /// Nil for a type that consists of others.
  ///
  /// Complete: each of these types decodes itself by asking for a single value of itself.
  private func scalar<Value>(_ type: Value.Type) throws -> Value? {
    if type == String.self { return try string() as? Value }
    if type == Bool.self { return try boolean() as? Value }
    if type == Int.self { return try integer(Int.self) as? Value }
    if type == Int64.self { return try integer(Int64.self) as? Value }
    if type == Int32.self { return try integer(Int32.self) as? Value }
    if type == UInt32.self { return try integer(UInt32.self) as? Value }
    if type == UInt8.self { return try integer(UInt8.self) as? Value }
    if type == UInt64.self { return try integer(UInt64.self) as? Value }
    if type == UInt.self { return try integer(UInt.self) as? Value }
    if type == JSONValue.self { return value as? Value }
    if type == Double.self { return try number(Double.self) as? Value }
    if type == Float.self { return try number(Float.self) as? Value }
    if type == Int8.self { return try integer(Int8.self) as? Value }
    if type == Int16.self { return try integer(Int16.self) as? Value }
    if type == UInt16.self { return try integer(UInt16.self) as? Value }
    return nil
  }

  private func string() throws -> String {
    guard case .string(let text) = value else { throw mismatch(String.self) }
    return text
  }

  private func boolean() throws -> Bool {
    guard case .bool(let isTrue) = value else { throw mismatch(Bool.self) }
    return isTrue
  }

  private func integer<Integer: FixedWidthInteger>(_ type: Integer.Type) throws -> Integer {
    let number: Integer? =
      switch value {
      case .integer(let value): Integer(exactly: value)
      case .unsigned(let value): Integer(exactly: value)
      // What would fit is an integer already, or was perhaps another before it became a Double.
      case .number(let value): value == 0 ? 0 : nil
      default: throw mismatch(type)
      }
    guard let number else { throw doesNotFit(type) }
    return number
  }

  private func number<Number: BinaryFloatingPoint>(_ type: Number.Type) throws -> Number {
    let number =
      switch value {
      case .integer(let value): Number(value)
      case .unsigned(let value): Number(value)
      case .number(let value): Number(value)
      default: throw mismatch(type)
      }
    guard number.isFinite else { throw doesNotFit(type) }
    return number
  }

  private func doesNotFit(_ type: any Any.Type) -> DecodingError {
    .dataCorrupted(
      .init(codingPath: codingPath, debugDescription: "the number \(value) does not fit into \(type)"))
  }
}

extension JSONValue {
  /// What it is, for messages.
  fileprivate var kind: String {
    switch self {
    case .null: "null"
    case .bool: "a truth value"
    case .integer, .unsigned, .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
