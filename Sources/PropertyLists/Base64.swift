// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// Bytes as text, as RFC 4648 has it.
enum Base64 {
  /// Nil for anything that an encoder would not write, white space aside.
  static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(text.count / 4 * 3)
    var bits: UInt32 = 0
    var digits = 0
    var padding = 0
    for byte in text {
      if XMLReader.isSpace(byte) { continue }
      if byte == 0x3d {
        padding += 1
        continue
      }
      guard padding == 0, let value = value(of: byte) else { return nil }
      bits = bits << 6 | value
      digits += 1
      guard digits % 4 == 0 else { continue }
      decoded.append(UInt8(truncatingIfNeeded: bits >> 16))
      decoded.append(UInt8(truncatingIfNeeded: bits >> 8))
      decoded.append(UInt8(truncatingIfNeeded: bits))
      bits = 0
    }
    switch (digits % 4, padding) {
    case (0, 0): return decoded
    case (2, 2) where bits & 0xf == 0: decoded.append(UInt8(truncatingIfNeeded: bits >> 4))
    case (3, 1) where bits & 0x3 == 0:
      decoded.append(UInt8(truncatingIfNeeded: bits >> 10))
      decoded.append(UInt8(truncatingIfNeeded: bits >> 2))
    default: return nil
    }
    return decoded
  }

  private static func value(of byte: UInt8) -> UInt32? {
    switch byte {
    case 0x41...0x5a: UInt32(byte - 0x41)
    case 0x61...0x7a: UInt32(byte - 0x61 + 26)
    case 0x30...0x39: UInt32(byte - 0x30 + 52)
    case 0x2b: 62
    case 0x2f: 63
    default: nil
    }
  }

  /// Appends the text for `bytes`.
  static func encode(_ bytes: ArraySlice<UInt8>, into text: inout [UInt8]) {
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let count = min(3, bytes.endIndex - index)
      var bits = UInt32(bytes[index]) << 16
      if count > 1 { bits |= UInt32(bytes[index + 1]) << 8 }
      if count > 2 { bits |= UInt32(bytes[index + 2]) }
      for digit in 0..<4 {
        text.append(digit > count ? 0x3d : alphabet[Int(bits >> (18 - 6 * digit) & 63)])
      }
      index += count
    }
  }

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
}
