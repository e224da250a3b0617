// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Writes JSON, byte for byte as the encoder of earlier versions did.
struct JSONWriter {
  private(set) var bytes: [UInt8] = []
  private let layout: JSONText.Layout
  private var level = 0

  init(_ layout: JSONText.Layout) { self.layout = layout }

  mutating func write(_ value: JSONValue) {
    switch value {
    case .null: bytes += "null".utf8
    case .bool(let value): bytes += (value ? "true" : "false").utf8
    case .integer(let value): bytes += String(value).utf8
    case .unsigned(let value): bytes += String(value).utf8
    case .number(let value): bytes += Self.text(value).utf8
    case .string(let value): write(value)
    case .array(let values): write(values)
    case .object(let fields): write(fields)
    }
  }

  private mutating func write(_ values: [JSONValue]) {
    bytes.append(UInt8(ascii: "["))
    level += 1
    var isFirst = true
    for value in values {
      begin(isFirst: isFirst)
      isFirst = false
      write(value)
    }
    end(UInt8(ascii: "]"), isEmpty: values.isEmpty)
  }

  private mutating func write(_ fields: [String: JSONValue]) {
    bytes.append(UInt8(ascii: "{"))
    level += 1
    var isFirst = true
    for (key, value) in fields.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
      begin(isFirst: isFirst)
      isFirst = false
      write(key)
      bytes += (layout == .pretty ? " : " : ":").utf8
      write(value)
    }
    end(UInt8(ascii: "}"), isEmpty: fields.isEmpty)
  }

  /// What stands before an entry.
  private mutating func begin(isFirst: Bool) {
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    if layout == .pretty { startLine() }
  }

  /// What stands behind the last entry; an empty line if there is none.
  private mutating func end(_ bracket: UInt8, isEmpty: Bool) {
    level -= 1
    if layout == .pretty {
      if isEmpty { bytes.append(UInt8(ascii: "\n")) }
      startLine()
    }
    bytes.append(bracket)
  }

  private mutating func startLine() {
    bytes.append(UInt8(ascii: "\n"))
    for _ in 0..<level { bytes += "  ".utf8 }
  }

  private mutating func write(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case UInt8(ascii: "/") where layout == .compact: bytes += "\\/".utf8
      case 0x08: bytes += "\\b".utf8
      case 0x09: bytes += "\\t".utf8
      case 0x0a: bytes += "\\n".utf8
      case 0x0c: bytes += "\\f".utf8
      case 0x0d: bytes += "\\r".utf8
      case 0..<0x20: bytes += "\\u00\(byte < 0x10 ? "0" : "")\(String(byte, radix: 16))".utf8
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// A number as Swift describes it, without a fraction that is zero.
  private static func text(_ number: Double) -> String {
    let text = number.description
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}
