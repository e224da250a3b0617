// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

// Apple's form. All numbers have their most significant byte first.
//
//     0   magic                      36  size of a digest: 32
//     4   length of the whole        37  kind of digest: 2, which is SHA-256
//     8   version                    38  platform: 0
//     12  flags                      39  size of a page, as a power of two: 12
//     16  where page digest 0 is     40  0
//     20  where the identifier is    44  0: pages lie one after another
//     24  number of part digests     48  where the team is, or 0
//     28  number of page digests     52  from 0x20300: 0, then the size in 64 bits
//     32  size of the executable     64  from 0x20400: three numbers of 64 bits about segments: 0
//                                    88  from 0x20500: the runtime's version, then 0
//
// Behind that the identifier and the team, each ending in a zero; the digests of the parts, the one with the
// highest number first, all zeros where there is no such part; the digests of the pages. Nothing lies between
// or behind them.

private let magic: UInt32 = 0xfade_0c02
private let sha256Kind: UInt8 = 2
private let pageBits: UInt8 = 12
private let knownVersions: [UInt32: Int] = [0x20200: 52, 0x20300: 64, 0x20400: 88, 0x20500: 96]
private let noDigest = [UInt8](repeating: 0, count: CodeDirectory.digestSize)

extension CodeDirectory {
  /// Reads Apple's form; whatever is not understood is refused, since it could mean something to the signer.
  package init(_ bytes: [UInt8]) throws(MalformedCodeDirectory) {
    guard bytes.count <= Self.maximumSize else { throw MalformedCodeDirectory("it is too long") }
    var reader = HeaderReader(bytes)
    guard try reader.number() == magic else { throw MalformedCodeDirectory("it has no magic number") }
    guard try reader.number() == bytes.count else {
      throw MalformedCodeDirectory("its length does not match its header")
    }
    let version = try reader.number()
    guard let headerSize = knownVersions[version] else {
      throw MalformedCodeDirectory("it has the unknown version 0x\(String(version, radix: 16))")
    }
    let flags = try reader.number()
    let pagesStart = Int(try reader.number())
    let identifierStart = Int(try reader.number())
    let partCount = Int(try reader.number())
    let pageCount = Int(try reader.number())
    let shortSize = try reader.number()
    try reader.expect([UInt8(Self.digestSize), sha256Kind], "a digest other than SHA-256")
    try reader.expect([0], "a platform")
    try reader.expect([pageBits], "a page size other than 4096")
    try reader.expect([0, 0, 0, 0], "data in a field that must be empty")
    try reader.expect([0, 0, 0, 0], "scattered pages")
    let teamStart = Int(try reader.number())
    var size = UInt64(shortSize)
    if version >= 0x20300 {
      try reader.expect([0, 0, 0, 0], "data in a field that must be empty")
      let longSize = try reader.longNumber()
      if longSize != 0 {
        guard shortSize == .max, longSize > UInt64(UInt32.max) else {
          throw MalformedCodeDirectory("it has two sizes for the executable")
        }
        size = longSize
      }
    }
    if version >= 0x20400 { try reader.expect([UInt8](repeating: 0, count: 24), "segments") }
    var runtime: UInt32 = 0
    if version >= 0x20500 {
      runtime = try reader.number()
      try reader.expect([0, 0, 0, 0], "data in a field that must be empty")
    }

    guard identifierStart == headerSize else { throw MalformedCodeDirectory("its identifier is misplaced") }
    let (identifier, afterIdentifier) = try Self.text(at: identifierStart, in: bytes, "identifier")
    self.init(identifier: identifier, team: nil)
    var end = afterIdentifier
    if teamStart != 0 {
      guard teamStart == end else { throw MalformedCodeDirectory("its team is misplaced") }
      (team, end) = try Self.text(at: teamStart, in: bytes, "team")
    }
    self.version = version
    self.flags = flags
    self.runtime = runtime
    executableSize = size

    // No sum below overflows: all numbers have 32 bits, and Int has 64.
    guard size <= Self.maximumExecutableSize, pageCount == Self.pageCount(of: size) else {
      throw MalformedCodeDirectory("its pages do not match an executable of \(size) bytes")
    }
    guard partCount <= 16, pagesStart == end + partCount * Self.digestSize,
      bytes.count == pagesStart + pageCount * Self.digestSize
    else { throw MalformedCodeDirectory("its digests are misplaced") }
    pageDigests = Array(bytes[pagesStart...])
    for number in stride(from: partCount, to: 0, by: -1) {
      let start = pagesStart - number * Self.digestSize
      let digest = Array(bytes[start..<start + Self.digestSize])
      if digest == noDigest { continue }
      guard let part = Part(rawValue: number) else {
        throw MalformedCodeDirectory("it has a digest of the unknown part \(number)")
      }
      digests[part] = digest
    }
  }

  /// Apple's form of this directory.
  ///
  /// What ``init(_:)`` read comes out as it was, but for parts of all zeros at the high end.
  package var bytes: [UInt8] {
    let headerSize = knownVersions[version] ?? 0
    let names = Array(identifier.utf8) + [0] + (team.map { Array($0.utf8) + [0] } ?? [])
    let partCount = digests.keys.map(\.rawValue).max() ?? 0
    let pagesStart = headerSize + names.count + partCount * Self.digestSize
    let isLong = executableSize > UInt64(UInt32.max)

    var bytes: [UInt8] = []
    bytes.reserveCapacity(pagesStart + pageDigests.count)
    bytes.append(number: magic)
    bytes.append(number: UInt32(clamping: pagesStart + pageDigests.count))
    bytes.append(number: version)
    bytes.append(number: flags)
    bytes.append(number: UInt32(clamping: pagesStart))
    bytes.append(number: UInt32(clamping: headerSize))
    bytes.append(number: UInt32(clamping: partCount))
    bytes.append(number: UInt32(clamping: pageDigests.count / Self.digestSize))
    bytes.append(number: UInt32(clamping: executableSize))
    bytes += [UInt8(Self.digestSize), sha256Kind, 0, pageBits]
    bytes.append(number: UInt32(0))
    bytes.append(number: UInt32(0))
    bytes.append(number: team == nil ? 0 : UInt32(clamping: headerSize + identifier.utf8.count + 1))
    if version >= 0x20300 {
      bytes.append(number: UInt32(0))
      bytes.append(number: isLong ? executableSize : 0)
    }
    if version >= 0x20400 { bytes += [UInt8](repeating: 0, count: 24) }
    if version >= 0x20500 {
      bytes.append(number: runtime)
      bytes.append(number: UInt32(0))
    }
    bytes += names
    for number in stride(from: partCount, to: 0, by: -1) {
      bytes += Part(rawValue: number).flatMap { digests[$0] } ?? noDigest
    }
    return bytes + pageDigests
  }

  private static func pageCount(of size: UInt64) -> Int {
    // The size has been found to be small enough.
    Int((size + UInt64(SealedParts.pageSize) - 1) / UInt64(SealedParts.pageSize))
  }

  /// A text that ends in a zero, and where the next thing begins.
  private static func text(
    at start: Int, in bytes: [UInt8], _ what: String
  ) throws(MalformedCodeDirectory) -> (text: String, end: Int) {
    guard start < bytes.count, let end = bytes[start...].prefix(256).firstIndex(of: 0), end > start else {
      throw MalformedCodeDirectory("its \(what) is empty or not terminated")
    }
    guard let text = String(validating: bytes[start..<end], as: UTF8.self),
      text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7f })
    else { throw MalformedCodeDirectory("its \(what) is not text") }
    return (text, end + 1)
  }
}

/// Reads the fields of fixed size.
private struct HeaderReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  private mutating func take(_ count: Int) throws(MalformedCodeDirectory) -> ArraySlice<UInt8> {
    guard bytes.count - position >= count else { throw MalformedCodeDirectory("it is truncated") }
    defer { position += count }
    return bytes[position..<position + count]
  }

  mutating func number() throws(MalformedCodeDirectory) -> UInt32 {
    try take(4).reduce(0) { $0 << 8 | UInt32($1) }
  }

  mutating func longNumber() throws(MalformedCodeDirectory) -> UInt64 {
    try take(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  mutating func expect(_ expected: [UInt8], _ other: String) throws(MalformedCodeDirectory) {
    guard try take(expected.count).elementsEqual(expected) else {
      throw MalformedCodeDirectory("it has \(other)")
    }
  }
}

extension [UInt8] {
  fileprivate mutating func append(number: some FixedWidthInteger) {
    for shift in stride(from: number.bitWidth - 8, through: 0, by: -8) {
      append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }
}
