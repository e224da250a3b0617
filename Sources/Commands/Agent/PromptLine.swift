// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy

/// A line that a person types at a terminal that passes on each byte: what ends it, and how it looks.
struct PromptLine {
  enum Event: Equatable {
    case changed
    case entered(String)
    /// ^D where nothing is typed.
    case ended
    /// ^C.
    case interrupted
    case completion
  }

  /// What stands before it.
  let prompt: String
  var columns: Int
  private var bytes: [UInt8] = []
  /// Where in a key's sequence of bytes we are, which is left out.
  private var sequence = Sequence.none

  private enum Sequence { case none, escape, body }

  private static let limit = 4096

  init(_ prompt: String, columns: Int) {
    self.prompt = prompt
    self.columns = columns
  }

  var text: String {
    get { String(decoding: bytes, as: UTF8.self) }
    set { bytes = Array(newValue.utf8.prefix(Self.limit)) }
  }

  /// Takes what was typed next; nil if that says nothing.
  mutating func take(_ byte: UInt8) -> Event? {
    if isOfSequence(byte) { return nil }
    switch byte {
    case 0x0a, 0x0d:
      defer { bytes = [] }
      return .entered(text)
    case 0x03: return .interrupted
    case 0x04: return bytes.isEmpty ? .ended : nil
    case 0x09: return .completion
    case 0x08, 0x7f: removeLetter()
    case 0x15: bytes = []
    case 0x17: removeWord()
    case 0..<0x20: return nil
    default:
      guard bytes.count < Self.limit else { return nil }
      bytes.append(byte)
    }
    return .changed
  }

  /// Whether it belongs to a key without a letter: ESC, [ or O, and so on.
  private mutating func isOfSequence(_ byte: UInt8) -> Bool {
    switch sequence {
    case .none:
      guard byte == 0x1b else { return false }
      sequence = .escape
    case .escape:
      sequence = byte == UInt8(ascii: "[") || byte == UInt8(ascii: "O") ? .body : .none
    case .body:
      if (0x40...0x7e).contains(byte) { sequence = .none }
    }
    return true
  }

  private mutating func removeLetter() {
    // What continues a letter of several bytes goes with it.
    while let last = bytes.popLast(), last & 0xc0 == 0x80 {}
  }

  private mutating func removeWord() {
    func isEnd(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "/") }
    while let last = bytes.last, isEnd(last) { bytes.removeLast() }
    while let last = bytes.last, !isEnd(last) { bytes.removeLast() }
  }

  /// The line in place of what stands in the terminal's: its end, where it is too long.
  func drawn() -> String {
    let room = max(8, columns - prompt.unicodeScalars.count - 1)
    var shown: [Unicode.Scalar] = []
    var width = 0
    for scalar in text.sanitized.unicodeScalars.reversed() {
      width += scalar.columns
      if width > room { break }
      shown.append(scalar)
    }
    var line = String.UnicodeScalarView()
    line.append(contentsOf: shown.reversed())
    return "\r\u{1b}[K\(prompt)\(String(line))"
  }
}

extension Unicode.Scalar {
  /// How many columns of a terminal it takes at most.
  var columns: Int { value < 0x1100 ? 1 : 2 }
}

extension String {
  /// The text in lines of at most so many columns, each after an indent.
  func wrapped(columns: Int, indent: String) -> [String] {
    let room = max(16, columns - indent.count - 1)
    var lines: [String] = []
    var line = UnicodeScalarView()
    var width = 0
    func end() {
      lines.append(indent + String(line))
      (line, width) = (UnicodeScalarView(), 0)
    }
    for word in unicodeScalars.split(separator: " ") {
      let length = word.reduce(0) { $0 + $1.columns }
      if !line.isEmpty, width + 1 + length > room { end() }
      if !line.isEmpty {
        line.append(" ")
        width += 1
      }
      for scalar in word {
        // A word that is longer than a line.
        if width + scalar.columns > room { end() }
        line.append(scalar)
        width += scalar.columns
      }
    }
    if !line.isEmpty { end() }
    return lines
  }
}
