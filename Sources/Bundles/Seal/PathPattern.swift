// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A pattern of a resource rule: a POSIX extended regular expression, read into a tree.
///
/// Patterns come with the bundle that is being judged, so the C library's `regcomp` is not let near them: it
/// may take memory and time without measure. What POSIX leaves undefined is refused.
indirect enum PathPattern: Equatable {
  /// One byte of a set.
  case one(ByteSet)
  /// The start of the path.
  case start
  /// Its end.
  case end
  case sequence([PathPattern])
  case choice([PathPattern])
  case repeated(PathPattern, from: Int, to: Int?)

  /// How long a pattern may be.
  static let lengthLimit = 2048
  /// How often something may be repeated by number, and how deep groups may be nested.
  private static let repetitionLimit = 255
  fileprivate static let groupLimit = 32

  init(_ text: String) throws(Finding) {
    guard text.utf8.count <= Self.lengthLimit else {
      throw Finding(.badRules, detail: "a pattern is too long: \(text.utf8.count) bytes")
    }
    var reader = PatternReader(text)
    self = try reader.choice(depth: 0)
    guard reader.isAtEnd else { throw reader.failure("a ')' without '('") }
  }

  fileprivate static func checkedRepetition(_ pattern: PathPattern, _ low: Int, _ high: Int?) -> PathPattern?
  {
    guard low <= repetitionLimit, high ?? low <= repetitionLimit, low <= high ?? low else { return nil }
    return .repeated(pattern, from: low, to: high)
  }
}

/// A set of bytes.
struct ByteSet: Hashable {
  private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  init() {}

  init(_ byte: UInt8) { insert(byte) }

  /// All bytes but zero, which is in no path.
  static var all: ByteSet {
    var set = ByteSet()
    for byte in 1...255 as ClosedRange<UInt8> { set.insert(byte) }
    return set
  }

  mutating func insert(_ byte: UInt8) {
    let bit: UInt64 = 1 << UInt64(byte & 63)
    switch byte >> 6 {
    case 0: words.0 |= bit
    case 1: words.1 |= bit
    case 2: words.2 |= bit
    default: words.3 |= bit
    }
  }

  func contains(_ byte: UInt8) -> Bool {
    let word =
      switch byte >> 6 {
      case 0: words.0
      case 1: words.1
      case 2: words.2
      default: words.3
      }
    return word >> UInt64(byte & 63) & 1 == 1
  }

  /// All bytes that are not in it, but for zero.
  var inverted: ByteSet {
    var set = ByteSet()
    for byte in 1...255 as ClosedRange<UInt8> where !contains(byte) { set.insert(byte) }
    return set
  }

  static func == (one: ByteSet, other: ByteSet) -> Bool { one.words == other.words }

  func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
    hasher.combine(words.3)
  }
}

private struct PatternReader {
  private let text: String
  private let bytes: [UInt8]
  private var position = 0

  init(_ text: String) {
    self.text = text
    bytes = Array(text.utf8)
  }

  var isAtEnd: Bool { position == bytes.count }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  func failure(_ reason: String) -> Finding { Finding(.badRules, detail: "'\(text)': \(reason)") }

  private mutating func takes(_ character: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: character) else { return false }
    position += 1
    return true
  }

  mutating func choice(depth: Int) throws(Finding) -> PathPattern {
    guard depth <= PathPattern.groupLimit else { throw failure("groups are nested too deeply") }
    var branches = [try sequence(depth)]
    while takes("|") { branches.append(try sequence(depth)) }
    return branches.count == 1 ? branches[0] : .choice(branches)
  }

  private mutating func sequence(_ depth: Int) throws(Finding) -> PathPattern {
    var parts: [PathPattern] = []
    while let next, next != UInt8(ascii: "|"), next != UInt8(ascii: ")") {
      parts.append(try repetition(of: atom(depth)))
    }
    return parts.count == 1 ? parts[0] : .sequence(parts)
  }

  private mutating func atom(_ depth: Int) throws(Finding) -> PathPattern {
    guard let byte = next else { throw failure("it ends too early") }
    position += 1
    switch Unicode.Scalar(byte) {
    case "^": return .start
    case "$": return .end
    case ".": return .one(.all)
    case "(":
      let group = try choice(depth: depth + 1)
      guard takes(")") else { throw failure("a '(' without ')'") }
      return group
    case "[": return .one(try set())
    case "*", "+", "?", "{": throw failure("nothing to repeat")
    case "\\":
      guard let escaped = next else { throw failure("it ends with a backslash") }
      // What a backslash means before a letter or a digit differs from one system to the next.
      guard !Character(Unicode.Scalar(escaped)).isLetter, !Character(Unicode.Scalar(escaped)).isNumber,
        escaped < 0x80
      else { throw failure("a backslash before a letter") }
      position += 1
      return .one(ByteSet(escaped))
    default:
      // All bytes of one character together, so that a repetition means the character.
      var character: [PathPattern] = [.one(ByteSet(byte))]
      while byte >= 0xc0, let next, next & 0xc0 == 0x80 {
        character.append(.one(ByteSet(next)))
        position += 1
      }
      return character.count == 1 ? character[0] : .sequence(character)
    }
  }

  private mutating func repetition(of atom: PathPattern) throws(Finding) -> PathPattern {
    var pattern = atom
    var count = 0
    while let byte = next {
      switch Unicode.Scalar(byte) {
      case "*": pattern = .repeated(pattern, from: 0, to: nil)
      case "+": pattern = .repeated(pattern, from: 1, to: nil)
      case "?": pattern = .repeated(pattern, from: 0, to: 1)
      case "{":
        position += 1
        guard let low = number() else { throw failure("a '{' without a number") }
        var high: Int? = low
        if takes(",") { high = number() }
        guard next == UInt8(ascii: "}"), let repeated = PathPattern.checkedRepetition(pattern, low, high)
        else {
          throw failure("a repetition that is malformed or too long")
        }
        pattern = repeated
      default: return pattern
      }
      position += 1
      count += 1
      guard count < 4 else { throw failure("repetitions of repetitions") }
    }
    return pattern
  }

  private mutating func number() -> Int? {
    let start = position
    while let next, (0x30...0x39).contains(next), position - start < 4 { position += 1 }
    return Int(String(decoding: bytes[start..<position], as: UTF8.self))
  }

  // MARK: Sets

  private mutating func set() throws(Finding) -> ByteSet {
    var found = ByteSet()
    let isInverted = takes("^")
    let start = position
    while true {
      guard let byte = next else { throw failure("a '[' without ']'") }
      if byte == UInt8(ascii: "]"), position > start {
        position += 1
        return isInverted ? found.inverted : found
      }
      if byte == UInt8(ascii: "["), position + 1 < bytes.count, ".=:".utf8.contains(bytes[position + 1]) {
        try insertClass(into: &found)
        continue
      }
      guard byte < 0x80 else { throw failure("only ASCII may be in '[...]'") }
      position += 1
      guard next == UInt8(ascii: "-"), position + 1 < bytes.count, bytes[position + 1] != UInt8(ascii: "]")
      else {
        found.insert(byte)
        continue
      }
      let last = bytes[position + 1]
      position += 2
      guard byte <= last, last < 0x80, last != UInt8(ascii: "[") else {
        throw failure("an invalid range")
      }
      for member in byte...last { found.insert(member) }
    }
  }

  private mutating func insertClass(into set: inout ByteSet) throws(Finding) {
    let start = position + 2
    guard bytes[position + 1] == UInt8(ascii: ":"),
      let end = bytes[start...].firstIndex(of: UInt8(ascii: ":")),
      end + 1 < bytes.count, bytes[end + 1] == UInt8(ascii: "]")
    else { throw failure("an unknown character class") }
    let ranges: [ClosedRange<UInt8>]
    switch String(decoding: bytes[start..<end], as: UTF8.self) {
    case "alpha": ranges = [0x41...0x5a, 0x61...0x7a]
    case "digit": ranges = [0x30...0x39]
    case "alnum": ranges = [0x30...0x39, 0x41...0x5a, 0x61...0x7a]
    case "upper": ranges = [0x41...0x5a]
    case "lower": ranges = [0x61...0x7a]
    case "xdigit": ranges = [0x30...0x39, 0x41...0x46, 0x61...0x66]
    case "space": ranges = [0x09...0x0d, 0x20...0x20]
    case "blank": ranges = [0x09...0x09, 0x20...0x20]
    case "punct": ranges = [0x21...0x2f, 0x3a...0x40, 0x5b...0x60, 0x7b...0x7e]
    case "print": ranges = [0x20...0x7e]
    case "graph": ranges = [0x21...0x7e]
    case "cntrl": ranges = [0x01...0x1f, 0x7f...0x7f]
    default: throw failure("an unknown character class")
    }
    for range in ranges { for byte in range { set.insert(byte) } }
    position = end + 2
  }
}
