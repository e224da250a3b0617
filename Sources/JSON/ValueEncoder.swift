// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension JSONValue {
  /// What a value encodes as.
  package init(encoding value: some Encodable) throws {
    self = try Self.encode(value, at: .start)
  }

  static func encode<Value: Encodable>(
    _ value: Value, at path: @autoclosure () -> CodingPath
  ) throws -> JSONValue {
    if let scalar = try scalar(value, at: path()) { return scalar }
    let encoded = EncodedValue()
    try value.encode(to: ValueEncoder(encoded: encoded, path: path()))
    return encoded.value
  }

  /// Nil for a value that consists of others.
  ///
  /// Complete: each of these types encodes itself by asking for a single value of itself.
  private static func scalar<Value>(
    _ value: Value, at path: @autoclosure () -> CodingPath
  ) throws -> JSONValue? {
    if Value.self == String.self { return (value as? String).map { .string($0) } }
    if Value.self == Bool.self { return (value as? Bool).map { .bool($0) } }
    if Value.self == Int.self { return (value as? Int).map { whole($0) } }
    if Value.self == Int64.self { return (value as? Int64).map { whole($0) } }
    if Value.self == Int32.self { return (value as? Int32).map { whole($0) } }
    if Value.self == UInt32.self { return (value as? UInt32).map { whole($0) } }
    if Value.self == UInt8.self { return (value as? UInt8).map { whole($0) } }
    if Value.self == UInt64.self { return (value as? UInt64).map { whole($0) } }
    if Value.self == UInt.self { return (value as? UInt).map { whole($0) } }
    if Value.self == JSONValue.self { return value as? JSONValue }
    if Value.self == Double.self { return try (value as? Double).map { try number($0, at: path()) } }
    if Value.self == Float.self {
      // By its own digits: as a Double it would have more.
      return try (value as? Float).map { try number(Double($0.description) ?? .nan, at: path()) }
    }
    if Value.self == Int8.self { return (value as? Int8).map { whole($0) } }
    if Value.self == Int16.self { return (value as? Int16).map { whole($0) } }
    if Value.self == UInt16.self { return (value as? UInt16).map { whole($0) } }
    return nil
  }

  private static func whole(_ value: some FixedWidthInteger) -> JSONValue {
    Int64(exactly: value).map { .integer($0) } ?? .unsigned(UInt64(truncatingIfNeeded: value))
  }

  private static func number(_ value: Double, at path: CodingPath) throws -> JSONValue {
    guard let number = JSONValue(value) else {
      throw EncodingError.invalidValue(
        value, .init(codingPath: path.keys, debugDescription: "JSON has no number \(value)"))
    }
    return number
  }
}

/// What has been encoded of one value; all containers of that value share it.
final class EncodedValue {
  /// Which place in this value one of its own containers fills.
  private enum Place {
    case key(String)
    case index(Int)
  }

  private(set) var array: [JSONValue] = []
  private var object: [String: JSONValue] = [:]
  private var single: JSONValue?
  private var isArray = false
  private var parts: [(place: Place, value: EncodedValue)] = []

  /// All of it; a value that has encoded nothing is an empty object.
  var value: JSONValue {
    for part in parts {
      switch part.place {
      case .key(let key): object[key] = part.value.value
      case .index(let index): array[index] = part.value.value
      }
    }
    parts = []
    return single ?? (isArray ? .array(array) : .object(object))
  }

  func set(_ value: JSONValue) { single = value }
  func set(_ value: JSONValue, for key: any CodingKey) { object[key.stringValue] = value }
  func append(_ value: JSONValue) { array.append(value) }
  func becomeArray() { isArray = true }

  /// A part that is encoded later than it gets its place.
  func part(for key: any CodingKey) -> EncodedValue {
    let part = EncodedValue()
    parts.append((.key(key.stringValue), part))
    return part
  }

  func nextPart() -> EncodedValue {
    let part = EncodedValue()
    parts.append((.index(array.count), part))
    array.append(.null)
    return part
  }
}

/// Encodes one value.
struct ValueEncoder: Encoder {
  let encoded: EncodedValue
  let path: CodingPath

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    KeyedEncodingContainer(KeyedValueEncoder(encoded: encoded, path: path))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    encoded.becomeArray()
    return UnkeyedValueEncoder(encoded: encoded, path: path)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }
}

extension ValueEncoder: SingleValueEncodingContainer {
  func encodeNil() { encoded.set(.null) }

  func encode<Value: Encodable>(_ value: Value) throws {
    encoded.set(try JSONValue.encode(value, at: path))
  }
}
