// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Reads numbers from bytes that come from outside, most significant byte first.
///
/// A read beyond the end returns nil and consumes nothing.
struct BigEndianReader {
  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var remaining: Int { bytes.count - position }

  mutating func word() -> UInt32? {
    guard remaining >= 4 else { return nil }
    let value = bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self)
    position += 4
    return UInt32(bigEndian: value)
  }

  mutating func doubleWord() -> UInt64? {
    guard remaining >= 8 else { return nil }
    let value = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
    position += 8
    return UInt64(bigEndian: value)
  }

  /// The next bytes, as they are.
  mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, count <= remaining else { return nil }
    defer { position += count }
    return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
  }
}

extension [UInt8] {
  /// Appends a number, most significant byte first.
  mutating func append(bigEndian value: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
  }
}
