// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Reads a property list from its binary form.
///
/// A header, objects in any order, a table of where they begin, and a trailer that tells the table's place
/// and the sizes of offsets and references. Objects refer to others by number, so one may be in many places,
/// and in a forged list in itself.
struct BinaryReader {
  private let bytes: [UInt8]
  private let offsetSize: Int
  private let referenceSize: Int
  private let count: Int
  private let topObject: Int
  private let table: Int
  /// The containers that are being read, the outermost first.
  private var open: [Int] = []
  private var values = 0
  private let valueLimit: Int
  /// How many bytes the keys of all dictionaries together may still have.
  ///
  /// A forged list has the same long keys in each of them, where they are compared.
  private var keyBytesLeft: Int
  /// Long values that were read, so that many references to one take no more memory than one.
  private var known: [Int: PropertyList] = [:]

  /// Real lists have short keys, though the same in many dictionaries: each is a reference of a byte or two.
  private static let keyBytesBeside = 1 << 20
  private static let keyBytesForEachByte = 32

  init(_ bytes: [UInt8], atMost valueLimit: Int) throws(PropertyListError) {
    guard bytes.starts(with: "bplist0".utf8), bytes.count >= 8 + 32 else {
      throw PropertyListError("a binary property list of an unknown version, or truncated")
    }
    let trailer = bytes.count - 32
    self.bytes = bytes
    self.valueLimit = valueLimit
    keyBytesLeft = Self.keyBytesBeside + bytes.count * Self.keyBytesForEachByte
    offsetSize = Int(bytes[trailer + 6])
    referenceSize = Int(bytes[trailer + 7])
    guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
      let count = Self.number(bytes, trailer + 8, 8), let top = Self.number(bytes, trailer + 16, 8),
      let table = Self.number(bytes, trailer + 24, 8)
    else { throw PropertyListError("a trailer with impossible sizes", at: trailer) }
    // The table lies between the objects and the trailer.
    guard count > 0, top < count, table >= 8 + 1, table <= trailer, count <= (trailer - table) / offsetSize
    else {
      throw PropertyListError("an object table that does not fit", at: trailer)
    }
    self.count = count
    self.topObject = top
    self.table = table
  }

  mutating func top() throws(PropertyListError) -> PropertyList { try object(topObject) }

  /// A number of at most eight bytes that is an Int; nil if it is not, or not all of it is there.
  private static func number(_ bytes: [UInt8], _ offset: Int, _ size: Int) -> Int? {
    guard offset >= 0, offset <= bytes.count - size else { return nil }
    var number: UInt64 = 0
    for index in offset..<(offset + size) { number = number << 8 | UInt64(bytes[index]) }
    return Int(exactly: number)
  }

  private mutating func object(_ index: Int) throws(PropertyListError) -> PropertyList {
    values += 1
    guard values <= valueLimit else { throw PropertyListError("too many values", at: table) }
    guard index < count, let offset = Self.number(bytes, table + index * offsetSize, offsetSize),
      offset >= 8, offset < table
    else { throw PropertyListError("a reference to an object that does not exist", at: table) }
    let marker = bytes[offset]
    switch marker >> 4 {
    case 0x0:
      switch marker {
      case 0x08: return .boolean(false)
      case 0x09: return .boolean(true)
      default: throw PropertyListError("an object of unknown type", at: offset)
      }
    case 0x1: return try integer(offset)
    case 0x2: return .real(try real(offset, marker))
    case 0x3:
      guard marker == 0x33 else { throw PropertyListError("an object of unknown type", at: offset) }
      return .date(try real(offset, marker))
    case 0x4, 0x5, 0x6:
      if let value = known[index] { return value }
      let value = try text(offset, marker)
      // A short string lies in the value itself.
      if marker & 0xf == 0xf { known[index] = value }
      return value
    case 0x8:
      let size = Int(marker & 0xf) + 1
      guard size <= 8, let number = Self.number(bytes, offset + 1, size), offset + 1 + size <= table else {
        throw PropertyListError("an identifier that is too large", at: offset)
      }
      return .uid(UInt64(number))
    case 0xa, 0xd: return try container(index, offset, isDictionary: marker >> 4 == 0xd)
    default: throw PropertyListError("an object of unknown type", at: offset)
    }
  }

  /// 1, 2 and 4 bytes hold what is not negative; 8 are signed; 16 hold what needs more than 63 bits.
  private func integer(_ offset: Int) throws(PropertyListError) -> PropertyList {
    let power = Int(bytes[offset] & 0xf)
    guard power <= 4, offset + 1 + 1 << power <= table else {
      throw PropertyListError("an integer that is too large", at: offset)
    }
    var high: UInt64 = 0
    var low: UInt64 = 0
    for index in offset + 1..<(offset + 1 + 1 << power) {
      high = high << 8 | low >> 56
      low = low << 8 | UInt64(bytes[index])
    }
    if power < 3 || power == 4 && high == 0 { return PropertyList(low) }
    if power == 3 || high == .max && low >> 63 == 1 { return .integer(Int64(bitPattern: low)) }
    throw PropertyListError("an integer that is too large", at: offset)
  }

  private func real(_ offset: Int, _ marker: UInt8) throws(PropertyListError) -> Double {
    let size = 1 << Int(marker & 0xf)
    guard size == 4 || size == 8, offset + 1 + size <= table else {
      throw PropertyListError("a number of an impossible size", at: offset)
    }
    var bits: UInt64 = 0
    for index in offset + 1..<(offset + 1 + size) { bits = bits << 8 | UInt64(bytes[index]) }
    return size == 8 ? Double(bitPattern: bits) : Double(Float(bitPattern: UInt32(bits)))
  }

  /// How many items an object has, and where the first one begins.
  private func extent(_ offset: Int, itemSize: Int) throws(PropertyListError) -> (count: Int, start: Int) {
    var start = offset + 1
    var count = Int(bytes[offset] & 0xf)
    if count == 0xf {
      guard start < table, bytes[start] >> 4 == 1, bytes[start] & 0xf <= 3,
        let number = Self.number(bytes, start + 1, 1 << Int(bytes[start] & 0xf))
      else { throw PropertyListError("an object without a length", at: offset) }
      count = number
      start += 1 + 1 << Int(bytes[start] & 0xf)
    }
    guard start <= table, count <= (table - start) / itemSize else {
      throw PropertyListError("an object that is longer than the property list", at: offset)
    }
    return (count, start)
  }

  private func text(_ offset: Int, _ marker: UInt8) throws(PropertyListError) -> PropertyList {
    let (count, start) = try extent(offset, itemSize: marker >> 4 == 6 ? 2 : 1)
    if marker >> 4 == 4 { return .data(Array(bytes[start..<(start + count)])) }
    if marker >> 4 == 5 {
      let text = bytes[start..<(start + count)]
      guard text.allSatisfy({ $0 < 0x80 }) else {
        throw PropertyListError("text that is not ASCII", at: offset)
      }
      return .string(String(decoding: text, as: UTF8.self))
    }
    let units = (0..<count).map { UInt16(bytes[start + 2 * $0]) << 8 | UInt16(bytes[start + 2 * $0 + 1]) }
    guard let text = String(validating: units, as: UTF16.self) else {
      throw PropertyListError("text that is not UTF-16", at: offset)
    }
    return .string(text)
  }

  private mutating func container(
    _ index: Int, _ offset: Int, isDictionary: Bool
  ) throws(PropertyListError) -> PropertyList {
    guard !open.contains(index) else { throw PropertyListError("an object that contains itself", at: offset) }
    guard open.count < PropertyList.depthLimit else {
      throw PropertyListError("nested too deeply", at: offset)
    }
    open.append(index)
    defer { open.removeLast() }
    let (count, start) = try extent(offset, itemSize: referenceSize * (isDictionary ? 2 : 1))
    guard isDictionary else {
      var found: [PropertyList] = []
      for item in 0..<count { found.append(try object(reference(start, item))) }
      return .array(found)
    }
    var found: [(key: String, value: PropertyList)] = []
    for item in 0..<count {
      guard case .string(let key) = try object(reference(start, item)) else {
        throw PropertyListError("a key that is not a string", at: offset)
      }
      keyBytesLeft -= key.utf8.count
      guard keyBytesLeft >= 0 else { throw PropertyListError("the same keys in too many places", at: offset) }
      found.append((key, try object(reference(start, count + item))))
    }
    guard let dictionary = PropertyList.Dictionary(found) else {
      throw PropertyListError("a dictionary has a key twice", at: offset)
    }
    return .dictionary(dictionary)
  }

  /// A reference is the number of an object; one that is no Int is none.
  private func reference(_ start: Int, _ item: Int) -> Int {
    Self.number(bytes, start + item * referenceSize, referenceSize) ?? .max
  }
}
