// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The block before each entry of a tar archive, see pax(1) and tar(5).
struct TarHeader: Equatable {
  static let blockSize = 512

  /// The bytes of the type field that have a meaning here.
  enum Kind {
    static let file = UInt8(ascii: "0")
    static let oldFile: UInt8 = 0
    static let contiguousFile = UInt8(ascii: "7")
    static let hardLink = UInt8(ascii: "1")
    static let symlink = UInt8(ascii: "2")
    static let characterDevice = UInt8(ascii: "3")
    static let blockDevice = UInt8(ascii: "4")
    static let directory = UInt8(ascii: "5")
    static let fifo = UInt8(ascii: "6")
    /// What follows is said of the next entry, or of all that follow.
    static let records = UInt8(ascii: "x")
    static let globalRecords = UInt8(ascii: "g")
    /// GNU's, before there was a standard: the name or the target of the next entry.
    static let longName = UInt8(ascii: "L")
    static let longTarget = UInt8(ascii: "K")
  }

  var path: [UInt8]
  var kind: UInt8
  var mode: UInt32
  var size: Int64
  /// In seconds since 1970.
  var time: Int64
  var target: [UInt8] = []
}

// MARK: Reading

extension TarHeader {
  /// Reads one; the text says why that can't be done.
  static func reading(_ block: [UInt8]) -> Result<TarHeader, Malformed> {
    guard block.count == blockSize, block[257..<262].elementsEqual("ustar".utf8) else {
      return .failure(.noHeader)
    }
    guard let sum = number(block[148..<156]), sum == checksum(block) else { return .failure(.wrongSum) }
    guard let mode = number(block[100..<108]).flatMap({ UInt32(exactly: $0) }),
      let size = number(block[124..<136]), let time = number(block[136..<148])
    else { return .failure(.badNumber) }
    var path = text(block[0..<100])
    // GNU's own form has other things where the standard has the beginning of a path.
    let prefix = block[262] == 0 ? text(block[345..<500]) : []
    if !prefix.isEmpty { path = prefix + [0x2f] + path }
    return .success(
      TarHeader(
        path: path, kind: block[156], mode: mode, size: size, time: time, target: text(block[157..<257])))
  }

  enum Malformed: Error {
    case noHeader
    case wrongSum
    case badNumber
  }

  private static func text(_ field: ArraySlice<UInt8>) -> [UInt8] { Array(field.prefix { $0 != 0 }) }

  /// A number in octal digits, or GNU's way for larger ones: its bytes, after one of 0x80.
  private static func number(_ field: ArraySlice<UInt8>) -> Int64? {
    if field.first == 0x80 {
      var value: Int64 = 0
      for byte in field.dropFirst() {
        guard value >> 55 == 0 else { return nil }
        value = value << 8 | Int64(byte)
      }
      return value
    }
    let digits = field.drop { $0 == 0x20 }.prefix { (0x30...0x37).contains($0) }
    guard digits.endIndex == field.endIndex || [0, 0x20].contains(field[digits.endIndex]) else { return nil }
    // Twelve digits at most, which is 36 bits.
    return digits.reduce(0) { $0 << 3 | Int64($1 - 0x30) }
  }

  /// The sum of all bytes, with blanks where the sum itself is.
  fileprivate static func checksum(_ block: [UInt8]) -> Int64 {
    let all = block.reduce(into: Int64(0)) { $0 += Int64($1) }
    return block[148..<156].reduce(into: all) { $0 += 0x20 - Int64($1) }
  }
}

// MARK: Writing

extension TarHeader {
  /// The block, and before it a record for what has no room in one.
  var blocks: [UInt8] {
    var records: [UInt8] = []
    var short = self
    let parts = Self.split(path)
    if parts == nil { records += Self.record("path", path) }
    if target.count > 100 {
      records += Self.record("linkpath", target)
      short.target = Array(target.suffix(100))
    }
    if size >= 1 << 33 {
      records += Self.record("size", Array("\(size)".utf8))
      short.size = 0
    }
    var blocks: [UInt8] = []
    if !records.isEmpty {
      let header = TarHeader(
        path: Array("PaxHeader".utf8), kind: Kind.records, mode: 0o644, size: Int64(records.count), time: time
      )
      blocks = header.block([], header.path) + records + Self.padding(after: Int64(records.count))
    }
    return blocks + short.block(parts?.prefix ?? [], parts?.name ?? Array(path.suffix(100)))
  }

  /// The zeros that fill up the last block of so many bytes.
  static func padding(after size: Int64) -> [UInt8] {
    [UInt8](repeating: 0, count: (blockSize - Int(size % Int64(blockSize))) % blockSize)
  }

  private func block(_ prefix: [UInt8], _ name: [UInt8]) -> [UInt8] {
    var block = [UInt8](repeating: 0, count: Self.blockSize)
    func put(_ bytes: some Sequence<UInt8>, at start: Int) {
      for (index, byte) in bytes.enumerated() { block[start + index] = byte }
    }
    func put(number: Int64, digits: Int, at start: Int) {
      let text = String(number, radix: 8)
      put((String(repeating: "0", count: max(0, digits - text.count)) + text).utf8, at: start)
    }
    put(name, at: 0)
    put(number: Int64(mode), digits: 7, at: 100)
    put(number: 0, digits: 7, at: 108)
    put(number: 0, digits: 7, at: 116)
    put(number: size, digits: 11, at: 124)
    put(number: min(max(0, time), 1 << 33 - 1), digits: 11, at: 136)
    block[156] = kind
    put(target, at: 157)
    put("ustar\u{0}00".utf8, at: 257)
    put(number: 0, digits: 7, at: 329)
    put(number: 0, digits: 7, at: 337)
    put(prefix, at: 345)
    put(number: Self.checksum(block), digits: 6, at: 148)
    block[155] = 0x20
    return block
  }

  /// A path in the two parts that a block has room for; nil if it has not.
  private static func split(_ path: [UInt8]) -> (prefix: [UInt8], name: [UInt8])? {
    if path.count <= 100 { return ([], path) }
    // A slash at the very end is the name's.
    for index in path.indices.dropLast() where path[index] == 0x2f {
      let name = path[(index + 1)...]
      if name.count <= 100, index <= 155, index > 0 { return (Array(path[..<index]), Array(name)) }
    }
    return nil
  }

  /// `LENGTH KEY=VALUE\n`, where the length counts its own digits.
  private static func record(_ key: String, _ value: [UInt8]) -> [UInt8] {
    let rest = Array(" \(key)=".utf8) + value + [0x0a]
    var length = rest.count
    while "\(length)".utf8.count + rest.count != length { length = "\(length)".utf8.count + rest.count }
    return Array("\(length)".utf8) + rest
  }
}
