// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension PropertyList {
  /// Understands a date as XML writes it: `2026-01-31T23:59:59Z`.
  package init?(date text: [UInt8]) {
    guard let seconds = PropertyListDate.seconds(text[...]) else { return nil }
    self = .date(seconds)
  }

  /// What XML writes for a date or for data, without blanks; empty for all else.
  package var encodedText: String {
    switch self {
    case .date(let seconds): return PropertyListDate.text(seconds) ?? ""
    case .data(let bytes):
      var text: [UInt8] = []
      Base64.encode(bytes[...], into: &text)
      return String(decoding: text, as: UTF8.self)
    default: return ""
    }
  }

  /// The value for people, as `defaults` of a Mac shows it: in the form that property lists had before XML.
  ///
  /// A string alone stands as it is.
  package var described: String { if case .string(let text) = self { text } else { described(level: 0) } }

  private func described(level: Int) -> String {
    let indent = String(repeating: " ", count: 4 * level)
    // What begins with a bracket stands apart from its key, as Apple's library has it.
    func inner(_ value: PropertyList) -> String {
      (value.isContainer ? indent + "    " : "") + value.described(level: level + 1)
    }
    switch self {
    case .string(let text): return Self.quoted(text)
    case .integer(let number): return String(number)
    case .unsigned(let number), .uid(let number): return String(number)
    case .real(let number):
      return Self.quoted(
        number == number.rounded() && abs(number) < 1e15 ? String(Int64(number)) : "\(number)")
    case .boolean(let isTrue): return isTrue ? "1" : "0"
    case .date(let seconds):
      let text = (PropertyListDate.text(seconds) ?? "0001-01-01T00:00:00Z").utf8
      let (day, time) = (text.prefix(10), text.dropFirst(11).prefix(8))
      return "\"\(String(day) ?? "") \(String(time) ?? "") +0000\""
    case .data(let bytes):
      var digits: [UInt8] = []
      digits.reserveCapacity(2 * bytes.count)
      for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
          digits.append(digit + (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10))
        }
      }
      return "{length = \(bytes.count), bytes = 0x\(String(decoding: digits, as: UTF8.self))}"
    case .array(let values):
      if values.isEmpty { return "(\n\(indent))" }
      let lines = values.map { "\(indent)    " + inner($0) }
      return "(\n" + lines.joined(separator: ",\n") + "\n\(indent))"
    case .dictionary(let dictionary):
      let lines = dictionary.entries.map { "\(indent)    \(Self.quoted($0.key)) = \(inner($0.value));\n" }
      return "{\n" + lines.joined() + "\(indent)}"
    }
  }

  private static func quoted(_ text: String) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
        || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "$")
    }
    if isPlain, !text.isEmpty { return text }
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\\(scalar)"
      case "\n": quoted += "\\n"
      case "\t": quoted += "\\t"
      case " "..."~": quoted.unicodeScalars.append(scalar)
      default: for unit in Character(scalar).utf16 { quoted += "\\U" + hexadecimal(UInt32(unit), 4) }
      }
    }
    return quoted + "\""
  }

  private static func hexadecimal(_ number: UInt32, _ width: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }
}
