// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Tags, text and what may stand between them.

extension XMLReader {
  enum Tag: Equatable {
    case container(String)
    case empty(String)

    var name: String {
      switch self {
      case .container(let name), .empty(let name): name
      }
    }
  }

  /// The byte at the position or behind it, 0 at the end: zero is no character of XML.
  @inline(__always)
  func byte(ahead: Int = 0) -> UInt8 {
    let index = position + ahead
    return index < bytes.count ? bytes[index] : 0
  }

  func isAt(_ text: StaticString) -> Bool {
    guard bytes.count - position >= text.utf8CodeUnitCount else { return false }
    for index in 0..<text.utf8CodeUnitCount where bytes[position + index] != text.utf8Start[index] {
      return false
    }
    return true
  }

  /// Goes behind the next `text`.
  private mutating func skip(behind text: StaticString) throws(PropertyListError) {
    let first = text.utf8Start[0]
    while position < bytes.count {
      if bytes[position] == first, isAt(text) {
        position += text.utf8CodeUnitCount
        return
      }
      position += 1
    }
    throw error("\(text) is missing")
  }

  mutating func skipSpace() {
    while Self.isSpace(byte()) { position += 1 }
  }

  static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0a || byte == 0x09 || byte == 0x0d }

  /// Skips white space, comments and processing instructions.
  mutating func skipMisc() throws(PropertyListError) {
    while true {
      skipSpace()
      guard try skipsAside() else { return }
    }
  }

  /// Skips a comment or a processing instruction if one is here.
  mutating func skipsAside() throws(PropertyListError) -> Bool {
    guard byte() == 0x3c else { return false }
    if isAt("<!--") {
      position += 4
      try skip(behind: "-->")
    } else if isAt("<?") {
      try skip(behind: "?>")
    } else {
      return false
    }
    return true
  }

  /// What comes before the first element.
  mutating func skipProlog() throws(PropertyListError) {
    if isAt("<?xml"), Self.isSpace(byte(ahead: 5)) {
      let start = position
      try skip(behind: "?>")
      try checkEncoding(bytes[start..<position])
    }
    try skipMisc()
    guard isAt("<!DOCTYPE") else { return }
    // Never read, only passed by; what could declare something is refused.
    var quote: UInt8 = 0
    while true {
      let next = byte()
      if next == 0 { throw error("<!DOCTYPE has no end") }
      if quote == 0, next == 0x5b { throw error("a document type with declarations of its own") }
      if quote == 0, next == 0x3e { break }
      if next == quote { quote = 0 } else if quote == 0, next == 0x22 || next == 0x27 { quote = next }
      position += 1
    }
    position += 1
    try skipMisc()
  }

  /// Refuses any encoding but those that are read.
  private func checkEncoding(_ declaration: ArraySlice<UInt8>) throws(PropertyListError) {
    let name = "encoding"
    var rest = Array(String(decoding: declaration, as: UTF8.self).lowercased().utf8)[...]
    while !rest.starts(with: name.utf8) {
      if rest.popFirst() == nil { return }
    }
    let value = String(decoding: rest.dropFirst(name.utf8.count), as: UTF8.self).drop {
      $0 == " " || $0 == "\t" || $0 == "="
    }.dropFirst()
    guard ["utf-8", "utf-16", "us-ascii", "ascii"].contains(where: { value.hasPrefix($0) }) else {
      throw error("an encoding that is neither UTF-8 nor UTF-16")
    }
  }

  /// A tag that opens an element.
  mutating func startTag(allowingAttributes: Bool = false) throws(PropertyListError) -> Tag {
    guard byte() == 0x3c else { throw error("a tag is missing") }
    position += 1
    let name = tagName()
    guard !name.isEmpty else { throw error("a tag without a name") }
    if allowingAttributes { try skipAttributes() }
    skipSpace()
    if byte() == 0x3e {
      position += 1
      return .container(name)
    }
    guard isAt("/>") else { throw error("unexpected text in the tag <\(name)") }
    position += 2
    return .empty(name)
  }

  /// The names of elements are short words.
  private mutating func tagName() -> String {
    let start = position
    while case 0x61...0x7a = byte(), position - start < 16 { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func skipAttributes() throws(PropertyListError) {
    var quote: UInt8 = 0
    while true {
      let next = byte()
      if next == 0 || next == 0x3c { throw error("a tag has no end") }
      if quote == 0, next == 0x3e || isAt("/>") { return }
      if next == quote { quote = 0 } else if quote == 0, next == 0x22 || next == 0x27 { quote = next }
      position += 1
    }
  }

  mutating func endTag(_ name: String) throws(PropertyListError) {
    guard try takesEndTag(name) else { throw error("</\(name)> is missing") }
  }

  /// Goes behind the tag that ends an element if it is here; refuses that of another.
  mutating func takesEndTag(_ name: String) throws(PropertyListError) -> Bool {
    guard byte() == 0x3c, byte(ahead: 1) == 0x2f else { return false }
    position += 2
    guard tagName() == name else { throw error("</\(name)> is missing") }
    skipSpace()
    guard byte() == 0x3e else { throw error("</\(name)> has no end") }
    position += 1
    return true
  }
}
