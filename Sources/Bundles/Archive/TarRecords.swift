// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// What is said of an entry outside of its header: records as pax(1) has them, or GNU's long names.
struct TarRecords: Equatable {
  /// Paths have 4,096 bytes at most; others may keep attributes here, which are left out.
  static let sizeLimit: Int64 = 1 << 20

  var path: [UInt8]?
  var target: [UInt8]?
  var size: Int64?

  var isEmpty: Bool { self == TarRecords() }

  /// Takes in records; nil, or why they can't be taken.
  mutating func add(_ bytes: [UInt8]) -> String? {
    var rest = bytes[...]
    while !rest.isEmpty {
      let digits = rest.prefix { (0x30...0x39).contains($0) }
      guard digits.count <= 8, let length = Int(String(decoding: digits, as: UTF8.self)),
        length <= rest.count, length > digits.count + 2, rest[digits.endIndex] == 0x20,
        rest[rest.startIndex + length - 1] == 0x0a
      else { return "a record has no proper length" }
      let record = rest[(digits.endIndex + 1)..<(rest.startIndex + length - 1)]
      rest = rest[(rest.startIndex + length)...]
      guard let equals = record.firstIndex(of: 0x3d) else { return "a record has no name" }
      let value = Array(record[(equals + 1)...])
      if let refusal = add(String(decoding: record[..<equals], as: UTF8.self), value) { return refusal }
    }
    return nil
  }

  private mutating func add(_ key: String, _ value: [UInt8]) -> String? {
    switch key {
    case "path": return set(&path, value)
    case "linkpath": return set(&target, value)
    case "size":
      guard size == nil else { return "a record is there twice" }
      guard value.count <= 18, !value.isEmpty, value.allSatisfy({ (0x30...0x39).contains($0) }) else {
        return "a record has no proper size"
      }
      size = Int64(String(decoding: value, as: UTF8.self))
      return nil
    default: return key.hasPrefix("GNU.sparse.") ? "a file has holes ('tar --sparse')" : nil
    }
  }

  /// Takes a long name of GNU's.
  mutating func setPath(_ bytes: [UInt8]) -> String? { set(&path, Array(bytes.prefix { $0 != 0 })) }
  mutating func setTarget(_ bytes: [UInt8]) -> String? { set(&target, Array(bytes.prefix { $0 != 0 })) }

  /// Where two say something else, each program would believe another one.
  private func set(_ field: inout [UInt8]?, _ value: [UInt8]) -> String? {
    guard field == nil else { return "a name is there twice" }
    guard !value.isEmpty, !value.contains(0) else { return "a name is empty, or has a zero in it" }
    field = value
    return nil
  }
}
