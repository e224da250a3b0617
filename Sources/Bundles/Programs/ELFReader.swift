// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO

/// Reads the few parts of an ELF file that ``ELFFile`` is about.
///
/// All that it reads is bounded. See elf(5).
struct ELFReader {
  struct Header {
    let type: UInt16
    let machine: UInt16
    let segmentsOffset: UInt64
    let segmentCount: Int
  }

  struct Segment {
    let type: UInt32
    let offset: UInt64
    let address: UInt64
    let size: UInt64
  }

  struct Dynamic {
    var libraries: [String] = []
    /// DT_RUNPATH.
    var runPath: [String] = []
    /// DT_RPATH.
    var oldPath: [String] = []
  }

  static let interpreterSegment: UInt32 = 3
  private static let loadedSegment: UInt32 = 1
  private static let dynamicSegment: UInt32 = 2
  private static let mostSegments = 1000
  private static let mostLibraries = 1000
  private static let longestText = 4096
  private static let largestDynamic: UInt64 = 1 << 20

  let read: (_ offset: UInt64, _ count: Int) throws(Errno) -> [UInt8]

  func header() throws(ELFFile.Refusal) -> Header {
    let bytes = try self.bytes(at: 0, atMost: 64)
    guard bytes.starts(with: [0x7f, 0x45, 0x4c, 0x46]) else { throw .notELF }
    guard bytes.count == 64 else { throw .damaged("its header is cut short") }
    guard bytes[4] == 2 else { throw .unsupported("it is a 32-bit program") }
    guard bytes[5] == 1 else { throw .unsupported("it is for another kind of processor") }
    guard bytes[54] == 56, bytes[55] == 0 else { throw .damaged("its list of segments has another form") }
    let count = Int(bytes.number(UInt16.self, at: 56) ?? 0)
    guard count <= Self.mostSegments else { throw .damaged("it has too many segments") }
    return Header(
      type: bytes.number(UInt16.self, at: 16) ?? 0, machine: bytes.number(UInt16.self, at: 18) ?? 0,
      segmentsOffset: bytes.number(UInt64.self, at: 32) ?? 0, segmentCount: count)
  }

  func segments(_ header: Header) throws(ELFFile.Refusal) -> [Segment] {
    let bytes = try self.bytes(at: header.segmentsOffset, exactly: header.segmentCount * 56)
    return stride(from: 0, to: bytes.count, by: 56).compactMap { start in
      guard let type = bytes.number(UInt32.self, at: start),
        let offset = bytes.number(UInt64.self, at: start + 8),
        let address = bytes.number(UInt64.self, at: start + 16),
        let size = bytes.number(UInt64.self, at: start + 32)
      else { return nil }
      return Segment(type: type, offset: offset, address: address, size: size)
    }
  }

  func interpreter(_ segment: Segment) throws(ELFFile.Refusal) -> String {
    guard segment.size > 1, segment.size <= Self.longestText else {
      throw .damaged("the path of its loader is too long")
    }
    let bytes = try self.bytes(at: segment.offset, exactly: Int(segment.size))
    return try Self.text(bytes)
  }

  func dynamic(_ segments: [Segment]) throws(ELFFile.Refusal) -> Dynamic {
    var found = Dynamic()
    guard let segment = segments.first(where: { $0.type == Self.dynamicSegment }) else { return found }
    guard segment.size <= Self.largestDynamic else { throw .damaged("its list of libraries is too long") }
    let bytes = try self.bytes(at: segment.offset, exactly: Int(segment.size))
    var entries: [(tag: UInt64, value: UInt64)] = []
    for start in stride(from: 0, to: bytes.count, by: 16) {
      guard let tag = bytes.number(UInt64.self, at: start),
        let value = bytes.number(UInt64.self, at: start + 8), tag != 0
      else { break }
      if [1, 5, 10, 15, 29].contains(tag) { entries.append((tag, value)) }
    }
    func first(_ tag: UInt64) -> UInt64? { entries.first { $0.tag == tag }?.value }
    guard let table = first(5), let tableSize = first(10) else { return found }
    let start = try offset(of: table, segments)
    for (tag, value) in entries where [1, 15, 29].contains(tag) {
      guard value < tableSize, !start.addingReportingOverflow(value).overflow else {
        throw .damaged("a name of a library is outside of its names")
      }
      let limit = Int(min(tableSize - value, UInt64(Self.longestText)))
      let text = try Self.text(try self.bytes(at: start + value, atMost: limit))
      switch tag {
      case 1: found.libraries.append(text)
      case 15: found.oldPath = text.parts(between: ":").map(String.init)
      default: found.runPath = text.parts(between: ":").map(String.init)
      }
      guard found.libraries.count <= Self.mostLibraries else { throw .damaged("it needs too many libraries") }
    }
    return found
  }

  /// Where in the file is what will be at an address.
  private func offset(of address: UInt64, _ segments: [Segment]) throws(ELFFile.Refusal) -> UInt64 {
    for segment in segments where segment.type == Self.loadedSegment {
      guard address >= segment.address, address - segment.address < segment.size else { continue }
      let offset = segment.offset.addingReportingOverflow(address - segment.address)
      if !offset.overflow { return offset.partialValue }
    }
    throw .damaged("its names of libraries are not in the file")
  }

  /// The text up to the zero that must end it.
  private static func text(_ bytes: [UInt8]) throws(ELFFile.Refusal) -> String {
    guard let end = bytes.firstIndex(of: 0), let text = String(validating: bytes[..<end], as: UTF8.self)
    else { throw .damaged("a name in it has no end, or is not UTF-8") }
    return text
  }

  private func bytes(at offset: UInt64, exactly count: Int) throws(ELFFile.Refusal) -> [UInt8] {
    let bytes = try bytes(at: offset, atMost: count)
    guard bytes.count == count else { throw .damaged("it is cut short") }
    return bytes
  }

  private func bytes(at offset: UInt64, atMost count: Int) throws(ELFFile.Refusal) -> [UInt8] {
    guard offset <= UInt64(Int64.max) else { throw .damaged("it is cut short") }
    do throws(Errno) { return try read(offset, count) } catch { throw .failed(error) }
  }
}

extension [UInt8] {
  /// The number whose lowest byte is there; nil if it does not end within the bytes.
  func number<Number: FixedWidthInteger & UnsignedInteger>(_: Number.Type, at start: Int) -> Number? {
    let size = MemoryLayout<Number>.size
    guard start >= 0, start <= count - size else { return nil }
    var value: Number = 0
    for byte in self[start..<start + size].reversed() { value = value << 8 | Number(byte) }
    return value
  }
}
