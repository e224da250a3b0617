// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// One method of each container encodes values of all types.

struct KeyedValueEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoded: EncodedValue
  let path: CodingPath

  var codingPath: [any CodingKey] { path.keys }

  func encodeNil(forKey key: Key) { encoded.set(.null, for: key) }

  func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
    encoded.set(try JSONValue.encode(value, at: .key(key, after: path)), for: key)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    part(for: key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    part(for: key).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { part(for: PositionKey.superclass) }

  func superEncoder(forKey key: Key) -> any Encoder { part(for: key) }

  private func part(for key: any CodingKey) -> ValueEncoder {
    ValueEncoder(encoded: encoded.part(for: key), path: .key(key, after: path))
  }
}

struct UnkeyedValueEncoder: UnkeyedEncodingContainer {
  let encoded: EncodedValue
  let path: CodingPath

  var codingPath: [any CodingKey] { path.keys }
  var count: Int { encoded.array.count }

  func encodeNil() { encoded.append(.null) }

  func encode<Value: Encodable>(_ value: Value) throws {
    encoded.append(try JSONValue.encode(value, at: .index(count, after: path)))
  }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    nextPart().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { nextPart().unkeyedContainer() }

  func superEncoder() -> any Encoder { nextPart() }

  private func nextPart() -> ValueEncoder {
    let path = CodingPath.index(count, after: path)
    return ValueEncoder(encoded: encoded.nextPart(), path: path)
  }
}
