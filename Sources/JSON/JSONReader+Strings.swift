// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension JSONReader {
  /// Reads a string, from its opening to its closing quotation mark.
  mutating func string() throws(DecodingError) -> String {
    position += 1
    let start = position
    skipPlain()
    guard next == UInt8(ascii: "\\") else { return try string(bytes[start..<position]) }
    var text = Array(bytes[start..<position])
    while takes(UInt8(ascii: "\\")) {
      try escape(into: &text)
      let start = position
      skipPlain()
      text += bytes[start..<position]
    }
    return try string(text[...])
  }

  /// Ends a string with what was read of it.
  private mutating func string(_ text: ArraySlice<UInt8>) throws(DecodingError) -> String {
    guard let byte = next else { throw error("a string does not end") }
    guard byte == UInt8(ascii: "\"") else { throw error("a string contains a control character") }
    guard let string = String(validating: text, as: UTF8.self) else {
      throw error("a string is not valid UTF-8")
    }
    position += 1
    return string
  }

  /// Goes on to what is not simply part of a string.
  private mutating func skipPlain() {
    while let byte = next, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 {
      position += 1
    }
  }

  /// What a backslash stands for with what follows it.
  private mutating func escape(into text: inout [UInt8]) throws(DecodingError) {
    guard let byte = next else { throw error("a string does not end") }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0c)
    case UInt8(ascii: "n"): text.append(0x0a)
    case UInt8(ascii: "r"): text.append(0x0d)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"): text += String(try scalar()).utf8
    default: throw error("a string contains an unknown escape")
    }
  }

  /// The character for the digits behind `\u`, and for those of the second half of a pair.
  private mutating func scalar() throws(DecodingError) -> Unicode.Scalar {
    let first = try unit()
    if let scalar = Unicode.Scalar(first) { return scalar }
    guard UTF16.isLeadSurrogate(first), takes(UInt8(ascii: "\\")), takes(UInt8(ascii: "u")) else {
      throw error("a string contains half of a surrogate pair")
    }
    let second = try unit()
    // The ranges of both halves leave nothing that is not a character.
    guard UTF16.isTrailSurrogate(second),
      let scalar = Unicode.Scalar(0x10000 + (UInt32(first & 0x3ff) << 10 | UInt32(second & 0x3ff)))
    else { throw error("a string contains half of a surrogate pair") }
    return scalar
  }

  /// Four hexadecimal digits.
  private mutating func unit() throws(DecodingError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let byte = next else { throw error("a string does not end") }
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: throw error("a string contains an unknown escape")
      }
      unit = unit << 4 | UInt16(digit)
      position += 1
    }
    return unit
  }
}
