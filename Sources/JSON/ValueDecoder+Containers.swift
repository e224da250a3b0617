// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// One method of each container decodes values of all types.

struct KeyedValueDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let fields: [String: JSONValue]
  let path: CodingPath

  var codingPath: [any CodingKey] { path.keys }
  var allKeys: [Key] { fields.keys.compactMap { Key(stringValue: $0) } }

  func contains(_ key: Key) -> Bool { fields[key.stringValue] != nil }

  func decodeNil(forKey key: Key) throws -> Bool { try decoder(for: key).decodeNil() }

  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try decoder(for: key).decode(type)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try decoder(for: key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try decoder(for: key).unkeyedContainer()
  }

  // What was not encoded of a superclass decodes as nothing.
  func superDecoder() -> any Decoder {
    let key = PositionKey.superclass
    return ValueDecoder(value: fields[key.stringValue] ?? .null, path: .key(key, after: path))
  }

  func superDecoder(forKey key: Key) -> any Decoder {
    ValueDecoder(value: fields[key.stringValue] ?? .null, path: .key(key, after: path))
  }

  private func decoder(for key: Key) throws -> ValueDecoder {
    guard let value = fields[key.stringValue] else {
      throw DecodingError.keyNotFound(
        key, .init(codingPath: codingPath, debugDescription: "there is no field '\(key.stringValue)'"))
    }
    return ValueDecoder(value: value, path: .key(key, after: path))
  }
}

struct UnkeyedValueDecoder: UnkeyedDecodingContainer {
  let values: [JSONValue]
  let path: CodingPath
  private(set) var currentIndex = 0

  init(values: [JSONValue], path: CodingPath) {
    self.values = values
    self.path = path
  }

  var codingPath: [any CodingKey] { path.keys }
  var count: Int? { values.count }
  var isAtEnd: Bool { currentIndex >= values.count }

  mutating func decodeNil() throws -> Bool {
    guard try next(Never.self).decodeNil() else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let value = try next(type).decode(type)
    currentIndex += 1
    return value
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> {
    let container = try next(type).container(keyedBy: type)
    currentIndex += 1
    return container
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    let container = try next([Any].self).unkeyedContainer()
    currentIndex += 1
    return container
  }

  mutating func superDecoder() throws -> any Decoder {
    let decoder = try next((any Decoder).self)
    currentIndex += 1
    return decoder
  }

  private func next(_ type: any Any.Type) throws -> ValueDecoder {
    let path = CodingPath.index(currentIndex, after: path)
    guard currentIndex < values.count else {
      throw DecodingError.valueNotFound(
        type, .init(codingPath: path.keys, debugDescription: "the array has no more values"))
    }
    return ValueDecoder(value: values[currentIndex], path: path)
  }
}
