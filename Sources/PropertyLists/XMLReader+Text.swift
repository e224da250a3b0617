// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// The text in an element.

extension XMLReader {
  /// What is in an element that has text only; the position is behind its end afterwards.
  mutating func text(until name: String) throws(PropertyListError) -> ArraySlice<UInt8> {
    // Most texts are one run of bytes, and are lent as they are.
    let start = position
    try skipCharacters()
    if byte() == 0x3c, byte(ahead: 1) == 0x2f {
      let whole = bytes[start..<position]
      try endTag(name)
      return whole
    }
    var collected = Array(bytes[start..<position])
    while true {
      switch byte() {
      case 0x26: try reference(into: &collected)
      case 0x3c:
        if try takesEndTag(name) { return collected[...] }
        try section(into: &collected)
      default:
        let start = position
        try skipCharacters()
        guard position > start else { throw error("<\(name)> has no end") }
        collected += bytes[start..<position]
      }
    }
  }

  /// Goes to the next `<` or `&` over characters that XML allows.
  private mutating func skipCharacters() throws(PropertyListError) {
    while position < bytes.count {
      let byte = bytes[position]
      if byte == 0x3c || byte == 0x26 { return }
      if byte < 0x20, !Self.isSpace(byte) { throw error("a control character") }
      position += 1
    }
  }

  /// A part of a text that is taken literally, or is not part of it.
  private mutating func section(into text: inout [UInt8]) throws(PropertyListError) {
    guard isAt("<![CDATA[") else {
      guard try skipsAside() else { throw error("an element where only text is allowed") }
      return
    }
    position += 9
    while !isAt("]]>") {
      let byte = byte()
      guard byte >= 0x20 || Self.isSpace(byte) else { throw error("<![CDATA[ has no end") }
      text.append(byte)
      position += 1
    }
    position += 3
  }

  /// One of the five entities of XML, or a character by its number.
  private mutating func reference(into text: inout [UInt8]) throws(PropertyListError) {
    let start = position + 1
    var end = start
    while end < bytes.count, end - start < 12, bytes[end] != 0x3b { end += 1 }
    guard end < bytes.count, bytes[end] == 0x3b else { throw error("& without an entity") }
    let name = String(decoding: bytes[start..<end], as: UTF8.self)
    switch name {
    case "amp": text.append(0x26)
    case "lt": text.append(0x3c)
    case "gt": text.append(0x3e)
    case "quot": text.append(0x22)
    case "apos": text.append(0x27)
    default:
      guard let scalar = Self.numbered(name) else { throw error("an unknown entity") }
      text.append(contentsOf: Array(Character(scalar).utf8))
    }
    position = end + 1
  }

  /// The character of `#38` or `#x26`.
  private static func numbered(_ name: String) -> Unicode.Scalar? {
    guard name.hasPrefix("#") else { return nil }
    let isHexadecimal = name.hasPrefix("#x")
    let digits = name.dropFirst(isHexadecimal ? 2 : 1)
    // A sign is no digit, though Swift would take it.
    guard digits.utf8.allSatisfy({ $0 > 0x2f }), let number = UInt32(digits, radix: isHexadecimal ? 16 : 10),
      let scalar = Unicode.Scalar(number), number >= 0x20 || isSpace(UInt8(number))
    else { return nil }
    return number == 0xfffe || number == 0xffff ? nil : scalar
  }

  /// The text as a string, if it is one.
  func string(_ text: ArraySlice<UInt8>) throws(PropertyListError) -> String {
    guard let string = String(validating: text, as: UTF8.self) else { throw error("text that is not UTF-8") }
    return string
  }

  /// Decimal, or hexadecimal with `0x`; a sign may be there.
  static func integer(_ text: ArraySlice<UInt8>) -> PropertyList? {
    var digits = trimmed(text)
    var isNegative = false
    if let sign = digits.first, sign == 0x2d || sign == 0x2b {
      isNegative = sign == 0x2d
      digits = digits.dropFirst()
    }
    var radix: UInt64 = 10
    if digits.starts(with: "0x".utf8) || digits.starts(with: "0X".utf8) {
      radix = 16
      digits = digits.dropFirst(2)
    }
    guard !digits.isEmpty else { return nil }
    var number: UInt64 = 0
    for byte in digits {
      guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, digit < radix else { return nil }
      let (product, tooLarge) = number.multipliedReportingOverflow(by: radix)
      let (sum, stillTooLarge) = product.addingReportingOverflow(UInt64(digit))
      guard !tooLarge, !stillTooLarge else { return nil }
      number = sum
    }
    if isNegative { return number <= 1 << 63 ? .integer(Int64(bitPattern: 0 &- number)) : nil }
    return PropertyList(number)
  }

  static func real(_ text: ArraySlice<UInt8>) -> Double? {
    let word = String(decoding: trimmed(text), as: UTF8.self)
    switch word.lowercased() {
    case "nan": return .nan
    case "inf", "+inf", "infinity", "+infinity": return .infinity
    case "-inf", "-infinity": return -.infinity
    default:
      // Not what else Swift takes for a number: hexadecimal digits, a NaN with a payload.
      guard word.utf8.allSatisfy({ "0123456789+-.eE".utf8.contains($0) }) else { return nil }
      return Double(word)
    }
  }

  private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var text = text.drop(while: isSpace)
    while let last = text.last, isSpace(last) { text.removeLast() }
    return text
  }

  /// The bytes of a text that starts with a byte order mark.
  static func utf8(fromUTF16 bytes: [UInt8]) throws(PropertyListError) -> [UInt8] {
    guard bytes.count % 2 == 0 else { throw PropertyListError("half a character of UTF-16", at: bytes.count) }
    let high = bytes[0] == 0xfe ? 0 : 1
    let units = stride(from: 2, to: bytes.count, by: 2).map {
      UInt16(bytes[$0 + high]) << 8 | UInt16(bytes[$0 + 1 - high])
    }
    guard let text = String(validating: units, as: UTF16.self) else {
      throw PropertyListError("text that is not UTF-16")
    }
    return Array(text.utf8)
  }
}

extension PropertyList {
  /// A number that is not negative.
  init(_ number: UInt64) { self = Int64(exactly: number).map(PropertyList.integer) ?? .unsigned(number) }
}
