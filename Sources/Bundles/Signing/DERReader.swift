// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Walks through elements of DER: each has a tag, the shortest length that there is, and its contents.
struct DERReader {
  /// One element.
  struct Element {
    let tag: UInt8
    let contents: ArraySlice<UInt8>
    /// The contents with what stands before them.
    let whole: ArraySlice<UInt8>

    /// Walks through what it contains.
    var reader: DERReader { DERReader(contents) }
  }

  // The tags that we meet.
  static let integer: UInt8 = 0x02
  static let octets: UInt8 = 0x04
  static let sequence: UInt8 = 0x30
  static let set: UInt8 = 0x31
  static let context0: UInt8 = 0xa0

  private var rest: ArraySlice<UInt8>

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  var isAtEnd: Bool { rest.isEmpty }

  /// The next element; nil at the end, and where there is none that is DER.
  mutating func next() -> Element? {
    let start = rest.startIndex
    // A tag of several bytes is nowhere in what we read.
    guard rest.count >= 2, rest[start] & 0x1f != 0x1f else { return nil }
    let first = rest[start + 1]
    var length = Int(first)
    var headerSize = 2
    if first >= 0x80 {
      let count = Int(first & 0x7f)
      guard (1...4).contains(count), rest.count >= 2 + count else { return nil }
      length = rest[(start + 2)..<(start + 2 + count)].reduce(0) { $0 << 8 | Int($1) }
      // Shorter lengths have shorter forms.
      guard length >= 0x80, rest[start + 2] != 0 else { return nil }
      headerSize += count
    }
    guard rest.count - headerSize >= length else { return nil }
    let end = start + headerSize + length
    defer { rest = rest[end...] }
    return Element(tag: rest[start], contents: rest[(start + headerSize)..<end], whole: rest[start..<end])
  }

  /// The next element if it has this tag.
  mutating func next(_ tag: UInt8) -> Element? {
    guard rest.first == tag else { return nil }
    return next()
  }

  /// Whether the next element is exactly this; goes past it if so.
  mutating func skip(_ expected: [UInt8]) -> Bool {
    guard rest.starts(with: expected) else { return false }
    rest = rest.dropFirst(expected.count)
    return true
  }
}
