// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Any value that JSON knows.
package enum JSONValue: Equatable, Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  /// Only for numbers that an `integer` can't hold.
  case unsigned(UInt64)
  /// Only for numbers that are not whole, or so large that a Double is not exact.
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])
}

extension JSONValue {
  /// A number in its case; nil if it is infinite or none.
  package init?(_ number: Double) {
    guard number.isFinite else { return nil }
    let isNegativeZero = number == 0 && number.sign == .minus
    if !isNegativeZero, number.magnitude <= 0x1p53, let integer = Int64(exactly: number) {
      self = .integer(integer)
    } else {
      self = .number(number)
    }
  }

  /// The fields of any value that encodes as an object; none if it doesn't.
  package static func fields(of value: some Encodable) -> [String: JSONValue] {
    guard case .object(let fields)? = try? JSONValue(encoding: value) else { return [:] }
    return fields
  }
}

// The coders of this module take a value as it is; these are for those of others.
extension JSONValue: Codable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(UInt64.self) {
      self = .unsigned(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSONValue].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSONValue].self))
    }
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .unsigned(let value): try container.encode(value)
    case .number(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }
}

extension JSONValue: CustomStringConvertible {
  /// As a person reads it.
  package var description: String {
    switch self {
    case .null: "none"
    case .bool(let value): value ? "yes" : "no"
    case .integer(let value): "\(value)"
    case .unsigned(let value): "\(value)"
    case .number(let value): "\(value)"
    case .string(let value): value
    case .array(let values) where values.isEmpty: "none"
    case .array(let values): values.map(\.description).joined(separator: ", ")
    case .object(let fields):
      fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ", ")
    }
  }
}
