// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Reads a tar archive once, from its beginning to its end: as the standard has it, as GNU's tar writes it,
/// and nothing that two programs would read as different things.
///
/// It knows nothing of what an entry may be; ``ArchiveEntry`` does.
struct TarReader {
  /// What may follow the end: programs fill up blocks of their own.
  private static let mostZeros = 1 << 20
  private static let chunk = 1 << 16

  private let read: (_ limit: Int) throws(Errno) -> [UInt8]?
  private var buffer: ArraySlice<UInt8> = []
  /// What is still to come of the last entry, and the zeros after that.
  private var contentsLeft: Int64 = 0
  private var paddingLeft: Int64 = 0
  private var isFirst = true
  /// For messages.
  private var last: [UInt8] = []

  /// `read` gives at most so many bytes, or nil at the end.
  init(_ read: @escaping (_ limit: Int) throws(Errno) -> [UInt8]?) { self.read = read }

  /// The next entry with what is said of it elsewhere, or nil after the last one.
  mutating func next() throws(ArchiveFailure) -> TarHeader? {
    while contentsLeft > 0 { _ = try contents() }
    var records = TarRecords()
    while true {
      try skip(paddingLeft)
      paddingLeft = 0
      let block = try block()
      defer { isFirst = false }
      if block.allSatisfy({ $0 == 0 }) {
        guard records.isEmpty else { throw failure(.damaged("a name has no file")) }
        try checkEnd()
        return nil
      }
      var header = try header(block)
      guard try take(header, into: &records) else {
        header.path = records.path ?? header.path
        header.target = records.target ?? header.target
        header.size = records.size ?? header.size
        last = header.path
        contentsLeft = header.size
        paddingLeft = Int64(TarHeader.padding(after: header.size).count)
        return header
      }
    }
  }

  /// Some more of the last entry's contents; nil at their end.
  mutating func contents() throws(ArchiveFailure) -> ArraySlice<UInt8>? {
    guard contentsLeft > 0 else { return nil }
    if buffer.isEmpty { try fill() }
    let part = buffer.prefix(Int(min(contentsLeft, Int64(Self.chunk))))
    guard !part.isEmpty else { throw failure(.truncated) }
    buffer = buffer.dropFirst(part.count)
    contentsLeft -= Int64(part.count)
    return part
  }

  // MARK: Headers

  private func header(_ block: [UInt8]) throws(ArchiveFailure) -> TarHeader {
    switch TarHeader.reading(block) {
    case .success(let header): return header
    case .failure(.noHeader) where isFirst: throw ArchiveFailure(.notTar(Self.kind(of: block)))
    case .failure(.noHeader): throw failure(.damaged("an entry has no header"))
    case .failure(.wrongSum): throw failure(.damaged("the sum of a header is wrong"))
    case .failure(.badNumber): throw failure(.damaged("a header has a bad number"))
    }
  }

  /// Takes in what is said of the next entry; false for an entry itself.
  private mutating func take(
    _ header: TarHeader, into records: inout TarRecords
  ) throws(ArchiveFailure) -> Bool {
    let kind = header.kind
    guard
      [
        TarHeader.Kind.records, TarHeader.Kind.globalRecords, TarHeader.Kind.longName,
        TarHeader.Kind.longTarget,
      ].contains(kind)
    else { return false }
    guard header.size <= TarRecords.sizeLimit else { throw failure(.damaged("a name is too long")) }
    let bytes = try bytes(Int(header.size))
    paddingLeft = Int64(TarHeader.padding(after: header.size).count)
    var refusal: String?
    switch kind {
    case TarHeader.Kind.records: refusal = records.add(bytes)
    case TarHeader.Kind.longName: refusal = records.setPath(bytes)
    case TarHeader.Kind.longTarget: refusal = records.setTarget(bytes)
    default:
      var all = TarRecords()
      refusal = all.add(bytes)
      if refusal == nil, !all.isEmpty { refusal = "one name is given to all entries" }
    }
    if let refusal { throw failure(.damaged(refusal)) }
    return true
  }

  /// What else a file may be that someone takes for an archive.
  private static func kind(of block: [UInt8]) -> String {
    let known: [([UInt8], String)] = [
      ([0x1f, 0x8b], "gzip -d"), ([0xfd, 0x37, 0x7a], "xz -d"), ([0x28, 0xb5, 0x2f, 0xfd], "zstd -d"),
      ([0x42, 0x5a, 0x68], "bzip2 -d"),
    ]
    if let (_, program) = known.first(where: { block.starts(with: $0.0) }) {
      return "; it is compressed, so run '\(program)' first"
    }
    return block.starts(with: [0x50, 0x4b]) ? "; it is a zip archive" : ""
  }

  // MARK: The end

  private mutating func checkEnd() throws(ArchiveFailure) {
    guard try block().allSatisfy({ $0 == 0 }) else { throw failure(.trailing) }
    var zeros = buffer.count
    while true {
      guard buffer.allSatisfy({ $0 == 0 }), zeros <= Self.mostZeros else { throw failure(.trailing) }
      buffer = []
      try fill()
      if buffer.isEmpty { return }
      zeros += buffer.count
    }
  }

  // MARK: Bytes

  private mutating func block() throws(ArchiveFailure) -> [UInt8] { try bytes(TarHeader.blockSize) }

  private mutating func bytes(_ count: Int) throws(ArchiveFailure) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      if buffer.isEmpty { try fill() }
      let part = buffer.prefix(count - bytes.count)
      if part.isEmpty {
        // Less than a block can be nothing; what it begins with may tell what it is.
        if isFirst { throw ArchiveFailure(bytes.isEmpty ? .empty : .notTar(Self.kind(of: bytes))) }
        throw failure(.truncated)
      }
      bytes += part
      buffer = buffer.dropFirst(part.count)
    }
    return bytes
  }

  private mutating func skip(_ count: Int64) throws(ArchiveFailure) {
    guard try bytes(Int(count)).allSatisfy({ $0 == 0 }) else {
      throw failure(.damaged("something is hidden between two entries"))
    }
  }

  /// Empty at the end.
  private mutating func fill() throws(ArchiveFailure) {
    do throws(Errno) { buffer = (try read(Self.chunk) ?? [])[...] } catch {
      throw ArchiveFailure(.failed(doing: "read", error))
    }
  }

  private func failure(_ reason: ArchiveFailure.Reason) -> ArchiveFailure { ArchiveFailure(reason, last) }
}
