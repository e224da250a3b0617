// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// What the value of a property says.

extension ContentLine {
  /// The whole value as one text.
  var text: String { decoded(Self.unescaped(plain[...])) }

  /// The parts of a value that semicolons separate.
  var parts: [String] { Self.split(plain[...], at: UInt8(ascii: ";")).map { decoded(Self.unescaped($0)) } }

  /// The value as it stands there, where nothing in it is escaped.
  var word: String { decoded(value) }

  /// What was quoted as printable characters is what it stands for.
  private var plain: [UInt8] { has("ENCODING", "QUOTED-PRINTABLE") ? Self.unquoted(value) : value }

  /// UTF-8, or Latin-1 where that is said; what is neither becomes question marks of Unicode.
  private func decoded(_ bytes: [UInt8]) -> String {
    let isLatin = has("CHARSET", "ISO-8859-1") || has("CHARSET", "WINDOWS-1252")
    guard isLatin else { return String(decoding: bytes, as: UTF8.self) }
    var text = String.UnicodeScalarView()
    for byte in bytes { text.append(Unicode.Scalar(byte)) }
    return String(text)
  }

  /// As RFC 2045 says it; what is no number of a byte stays as it is.
  static func unquoted(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = bytes[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "="), let high = rest.first.flatMap(digit),
        let low = rest.dropFirst().first.flatMap(digit)
      else {
        result.append(byte)
        continue
      }
      result.append(high << 4 | low)
      rest = rest.dropFirst(2)
    }
    return result
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte &- UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte &- UInt8(ascii: "A") &+ 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte &- UInt8(ascii: "a") &+ 10
    default: nil
    }
  }

  /// The parts between separators that no backslash stands before.
  static func split(_ bytes: ArraySlice<UInt8>, at separator: UInt8) -> [ArraySlice<UInt8>] {
    var parts: [ArraySlice<UInt8>] = []
    var start = bytes.startIndex
    var isEscaped = false
    for index in bytes.indices {
      let byte = bytes[index]
      if !isEscaped, byte == separator, parts.count < mostParts {
        parts.append(bytes[start..<index])
        start = index + 1
      }
      isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
    }
    return parts + [bytes[start...]]
  }

  private static let mostParts = 32

  static func unescaped(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    guard bytes.contains(UInt8(ascii: "\\")) else { return Array(bytes) }
    var result: [UInt8] = []
    var rest = bytes
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"), let next = rest.first else {
        result.append(byte)
        continue
      }
      switch next {
      case UInt8(ascii: "n"), UInt8(ascii: "N"): result.append(0x0a)
      case UInt8(ascii: ";"), UInt8(ascii: ","), UInt8(ascii: ":"), UInt8(ascii: "\\"): result.append(next)
      default: result += [byte, next]
      }
      rest = rest.dropFirst()
    }
    return result
  }
}

/// How much text there still may be in what is told of one contact or entry.
struct TextAllowance {
  private var left = 12_000

  /// The text, cut to so many bytes, without what controls a terminal but for line ends and tabs, and without
  /// blanks at its ends; nil if nothing is left of it.
  mutating func take(_ text: String, atMost limit: Int = 1000) -> String? {
    var result = String.UnicodeScalarView()
    var size = 0
    let most = min(limit, left)
    for scalar in text.unicodeScalars {
      if result.isEmpty, scalar.properties.isWhitespace { continue }
      let isControl = scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
      if isControl, scalar != "\n", scalar != "\t" { continue }
      size += UTF8.width(scalar)
      if size > most { break }
      result.append(scalar)
    }
    while let last = result.last, last.properties.isWhitespace { result.removeLast() }
    guard !result.isEmpty else { return nil }
    let taken = String(result)
    left -= taken.utf8.count
    return taken
  }
}
