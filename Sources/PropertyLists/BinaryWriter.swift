// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension PropertyList {
  /// The list in its binary form, each string written once.
  package func binary() throws(PropertyListError) -> [UInt8] {
    // Before it takes the memory; strings are counted wherever they stand.
    guard !exceeds(2 * Self.sizeLimit) else { throw PropertyListError("too long") }
    var writer = BinaryWriter()
    let count = try writer.count(self, depth: 0)
    return try writer.write(self, objects: count)
  }
}

private struct BinaryWriter {
  private var bytes = Array("bplist00".utf8)
  private var offsets: [Int] = []
  private var strings: [[UInt8]: Int] = [:]
  private var referenceSize = 1

  /// How many objects there are at most; it decides the size of references.
  func count(_ value: PropertyList, depth: Int) throws(PropertyListError) -> Int {
    guard depth < PropertyList.depthLimit || !value.isContainer else {
      throw PropertyListError("nested too deeply")
    }
    var total = 1
    switch value {
    case .array(let values):
      for value in values { total += try count(value, depth: depth + 1) }
    case .dictionary(let dictionary):
      for entry in dictionary.entries { total += 1 + (try count(entry.value, depth: depth + 1)) }
    default: break
    }
    return total
  }

  mutating func write(_ value: PropertyList, objects: Int) throws(PropertyListError) -> [UInt8] {
    referenceSize = Self.size(of: objects)
    let top = write(value)
    let table = bytes.count
    let offsetSize = Self.size(of: table)
    for offset in offsets { append(UInt64(offset), offsetSize) }
    bytes += [0, 0, 0, 0, 0, 0, UInt8(offsetSize), UInt8(referenceSize)]
    for number in [offsets.count, top, table] { append(UInt64(number), 8) }
    guard bytes.count <= PropertyList.sizeLimit else { throw PropertyListError("too long") }
    return bytes
  }

  private static func size(of number: Int) -> Int {
    switch number {
    case ...0xff: 1
    case ...0xffff: 2
    case ...0xffff_ffff: 4
    default: 8
    }
  }

  private mutating func append(_ number: UInt64, _ size: Int) {
    for index in (0..<size).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
  }

  private mutating func begin() -> Int {
    offsets.append(bytes.count)
    return offsets.count - 1
  }

  private mutating func marker(_ kind: UInt8, _ count: Int) {
    guard count >= 15 else { return bytes.append(kind << 4 | UInt8(count)) }
    bytes.append(kind << 4 | 0xf)
    integer(Int64(count))
  }

  private mutating func integer(_ number: Int64) {
    let size = number < 0 ? 8 : Self.size(of: Int(number))
    bytes.append(0x10 | UInt8(size.trailingZeroBitCount))
    append(UInt64(bitPattern: number), size)
  }

  /// Writes a value behind those that it refers to; returns its number.
  private mutating func write(_ value: PropertyList) -> Int {
    switch value {
    case .string(let text): return write(text)
    case .array(let values):
      let references = values.map { write($0) }
      let index = begin()
      marker(0xa, references.count)
      for reference in references { append(UInt64(reference), referenceSize) }
      return index
    case .dictionary(let dictionary):
      let keys = dictionary.entries.map { write($0.key) }
      let values = dictionary.entries.map { write($0.value) }
      let index = begin()
      marker(0xd, keys.count)
      for reference in keys + values { append(UInt64(reference), referenceSize) }
      return index
    default: break
    }
    let index = begin()
    switch value {
    case .data(let data):
      marker(0x4, data.count)
      bytes += data
    case .integer(let number): integer(number)
    case .unsigned(let number):
      bytes.append(0x14)
      append(0, 8)
      append(number, 8)
    case .real(let number):
      bytes.append(0x23)
      append(number.bitPattern, 8)
    case .date(let seconds):
      bytes.append(0x33)
      append(seconds.bitPattern, 8)
    case .uid(let number):
      let size = Self.size(of: Int(clamping: number))
      bytes.append(0x80 | UInt8(size - 1))
      append(number, size)
    case .boolean(let isTrue): bytes.append(isTrue ? 0x09 : 0x08)
    case .string, .array, .dictionary: break
    }
    return index
  }

  private mutating func write(_ text: String) -> Int {
    let key = Array(text.utf8)
    if let index = strings[key] { return index }
    let index = begin()
    if key.allSatisfy({ $0 < 0x80 }) {
      marker(0x5, key.count)
      bytes += key
    } else {
      let units = Array(text.utf16)
      marker(0x6, units.count)
      for unit in units { append(UInt64(unit), 2) }
    }
    strings[key] = index
    return index
  }
}
