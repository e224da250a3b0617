// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A file of texts by keys, as `InfoPlist.strings` and the tables of localized directories are.
///
/// Such a file is a property list in XML or binary, or of the old form (`"key" = "text";`), in UTF-8 or
/// UTF-16. Only one text of it is ever wanted, so nothing is kept of all others.
package enum StringsFile {
  /// How long a file may be in bytes; one that is longer is as good as a broken one.
  package static let sizeLimit = 64 << 10
  /// How many values a binary list may have; few bytes of it can stand for many values.
  private static let valueLimit = 20_000

  /// The text for a key, or nil where the file has none; throws where it is no such file.
  package static func text(of key: String, in bytes: [UInt8]) throws(PropertyListError) -> String? {
    guard bytes.count <= sizeLimit else { throw PropertyListError("too long") }
    if bytes.starts(with: "bplist".utf8) { return try listed(key, bytes) }
    let text = try decoded(bytes)
    let start = text.drop { OldStyleReader.isSpace($0) }.prefix(5)
    if start.elementsEqual("<?xml".unicodeScalars) || start.elementsEqual("<!DOC".unicodeScalars)
      || start.elementsEqual("<plis".unicodeScalars)
    {
      return try listed(key, bytes)
    }
    var reader = OldStyleReader(text, key)
    return try reader.read()
  }

  private static func listed(_ key: String, _ bytes: [UInt8]) throws(PropertyListError) -> String? {
    guard let table = try PropertyList(reading: bytes, atMost: valueLimit).dictionary else {
      throw PropertyListError("not a table")
    }
    return table[key]?.string
  }

  /// The characters of a file, by its byte order mark, or by where a first character of ASCII has its zero.
  private static func decoded(_ bytes: [UInt8]) throws(PropertyListError) -> [Unicode.Scalar] {
    let isMarked = bytes.starts(with: [0xfe, 0xff]) || bytes.starts(with: [0xff, 0xfe])
    let isWide = isMarked || bytes.count > 1 && (bytes[0] == 0) != (bytes[1] == 0)
    let text: String?
    if isWide {
      let isBigEndian = bytes[0] == (isMarked ? 0xfe : 0)
      let units = stride(from: isMarked ? 2 : 0, to: bytes.count - 1, by: 2).map { index in
        UInt16(bytes[index + (isBigEndian ? 0 : 1)]) << 8 | UInt16(bytes[index + (isBigEndian ? 1 : 0)])
      }
      text = String(validating: units, as: UTF16.self)
    } else {
      text = String(
        validating: bytes.dropFirst(bytes.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0), as: UTF8.self)
    }
    guard let text else { throw PropertyListError("text that is neither UTF-8 nor UTF-16") }
    return Array(text.unicodeScalars)
  }
}

/// Reads the form that property lists had before XML, as far as tables of texts go.
private struct OldStyleReader {
  private let text: [Unicode.Scalar]
  private let wanted: String
  private var position = 0
  private var found: String?

  init(_ text: [Unicode.Scalar], _ wanted: String) {
    self.text = text
    self.wanted = wanted
  }

  /// Goes through the whole file; of a key that is there twice, the last counts.
  ///
  /// Without braces, what comes behind the last entry is no matter, as to Apple's reader.
  mutating func read() throws(PropertyListError) -> String? {
    skipSpace()
    let start = position
    let isBraced = takes("{")
    try entries(depth: 0)
    if isBraced {
      try require("}")
      skipSpace()
    }
    guard position == text.count || !isBraced && position > start else {
      throw error("something that is no table")
    }
    return found
  }

  private mutating func entries(depth: Int) throws(PropertyListError) {
    while let key = nextKey() {
      // Where there is no text, the key is the text.
      var value: String? = key
      skipSpace()
      if takes("=") { value = try self.value(depth: depth) }
      try require(";")
      if depth == 0, key.hasSameBytes(as: wanted) { found = value }
    }
  }

  /// A key; nil where none begins here, or one has no end.
  private mutating func nextKey() -> String? {
    skipSpace()
    return (try? string()) ?? nil
  }

  /// A text; nil for a value of another kind, which is passed over.
  private mutating func value(depth: Int) throws(PropertyListError) -> String? {
    guard depth < PropertyList.depthLimit else { throw error("nested too deeply") }
    skipSpace()
    if takes("{") {
      try entries(depth: depth + 1)
      try require("}")
    } else if takes("(") {
      while !takesAfterSpace(")") {
        _ = try value(depth: depth + 1)
        if !takesAfterSpace(",") {
          try require(")")
          break
        }
      }
    } else if takes("<") {
      while let next, next.properties.isASCIIHexDigit || Self.isSpace(next) { position += 1 }
      try require(">")
    } else if let string = try string() {
      return string
    } else {
      throw error("a value is missing")
    }
    return nil
  }

  // MARK: Strings

  /// A string, with quotation marks or without; nil if something else stands here.
  private mutating func string() throws(PropertyListError) -> String? {
    guard let quote = next else { return nil }
    var string = String.UnicodeScalarView()
    guard quote == "\"" || quote == "'" else {
      while let next, Self.isPlain(next) {
        string.append(next)
        position += 1
      }
      return string.isEmpty ? nil : String(string)
    }
    position += 1
    while let next {
      position += 1
      if next == quote { return String(string) }
      string.append(next == "\\" ? try escaped() : next)
    }
    throw error("a string has no end")
  }

  private mutating func escaped() throws(PropertyListError) -> Unicode.Scalar {
    guard let letter = next else { throw error("a string has no end") }
    switch letter {
    case "0"..."7":
      guard let number = digits(3, radix: 8), let scalar = Self.character(Int(number)) else {
        throw error("an octal number that is no character")
      }
      return scalar
    case "U":
      position += 1
      return try unit()
    default:
      position += 1
      return Self.letters[letter] ?? letter
    }
  }

  /// A character by its unit of UTF-16, or by two of them.
  private mutating func unit() throws(PropertyListError) -> Unicode.Scalar {
    guard let first = digits(4, radix: 16) else { throw error("'\\U' without a number") }
    if let scalar = Unicode.Scalar(first) { return scalar }
    guard first < 0xdc00, takes("\\"), takes("U"), let second = digits(4, radix: 16),
      0xdc00...0xdfff ~= second,
      let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    else { throw error("half a character") }
    return scalar
  }

  private mutating func digits(_ count: Int, radix: UInt32) -> UInt32? {
    let start = position
    var number: UInt32 = 0
    while position < start + count, let next, let digit = Character(next).hexDigitValue, digit < radix {
      number = number * radix + UInt32(digit)
      position += 1
    }
    return position == start ? nil : number
  }

  private static let letters: [Unicode.Scalar: Unicode.Scalar] = [
    "a": "\u{7}", "b": "\u{8}", "f": "\u{c}", "n": "\n", "r": "\r", "t": "\t", "v": "\u{b}",
  ]

  /// The character that a byte of NeXTSTEP was, which octal numbers still mean.
  private static func character(_ byte: Int) -> Unicode.Scalar? {
    if byte < 0x80 { return Unicode.Scalar(UInt8(byte)) }
    let scalars = upperHalf.unicodeScalars
    return scalars.index(scalars.startIndex, offsetBy: byte - 0x80, limitedBy: scalars.endIndex).flatMap {
      $0 == scalars.endIndex ? nil : scalars[$0]
    }
  }

  private static let upperHalf =
    "\u{a0}ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖÙÚÛÜÝÞµ×÷©¡¢£⁄¥ƒ§¤’“«‹›ﬁﬂ®–†‡·¦¶•‚„”»…‰¬¿"
    + "¹ˋ´ˆ˜¯˘˙¨²˚¸³˝˛ˇ—±¼½¾àáâãäåçèéêëìÆíªîïðñŁØŒºòóôõöæùúûıüýłøœßþÿ"

  /// Whether a string of such characters needs no quotation marks.
  private static func isPlain(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "0"..."9", "_", "$", "/", ":", ".", "-": true
    default: false
    }
  }

  // MARK: Between strings

  private var next: Unicode.Scalar? { position < text.count ? text[position] : nil }

  private mutating func takes(_ scalar: Unicode.Scalar) -> Bool {
    guard next == scalar else { return false }
    position += 1
    return true
  }

  private mutating func takesAfterSpace(_ scalar: Unicode.Scalar) -> Bool {
    skipSpace()
    return takes(scalar)
  }

  private mutating func require(_ scalar: Unicode.Scalar) throws(PropertyListError) {
    guard takesAfterSpace(scalar) else { throw error("'\(scalar)' is missing") }
  }

  static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "\u{9}"..."\u{d}", " ", "\u{2028}", "\u{2029}": true
    default: false
    }
  }

  /// Passes over blanks and comments; one that has no end takes all that is left.
  private mutating func skipSpace() {
    while let next {
      if Self.isSpace(next) {
        position += 1
      } else if next == "/", position + 1 < text.count, text[position + 1] == "/" {
        while let next = self.next, next != "\n", next != "\r" { position += 1 }
      } else if next == "/", position + 1 < text.count, text[position + 1] == "*" {
        position += 2
        while position + 1 < text.count, text[position] != "*" || text[position + 1] != "/" { position += 1 }
        position = min(position + 2, text.count)
      } else {
        return
      }
    }
  }

  private func error(_ reason: String) -> PropertyListError { PropertyListError(reason) }
}
