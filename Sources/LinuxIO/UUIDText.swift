// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// UUIDs as RFC 9562 has them, as text in capital letters, which is how Macs write them.
package enum UUIDText {
  private static let form = Array("dddddddd-dddd-dddd-dddd-dddddddddddd".utf8)

  /// A new one, made of random numbers.
  package static func random() -> String {
    made(of: .random(in: 0 ... .max), .random(in: 0 ... .max))
  }

  /// One that is made of these numbers, which are as good as random.
  package static func made(of high: UInt64, _ low: UInt64) -> String {
    // Version 4, and the variant that all versions have.
    let high = high & ~0xf000 | 0x4000
    let low = low & ~(3 << 62) | 2 << 62
    let digits = Array((hexadecimal(high) + hexadecimal(low)).utf8)
    let parts = [digits[..<8], digits[8..<12], digits[12..<16], digits[16..<20], digits[20...]]
    return parts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "-")
  }

  /// The text of a UUID that is written in letters of any case; nil if it is none.
  package static func canonical(_ text: String) -> String? {
    let bytes = Array(text.utf8)
    guard bytes.count == form.count,
      zip(bytes, form).allSatisfy({ byte, expected in
        expected == UInt8(ascii: "d") ? isDigit(byte) : byte == expected
      })
    else { return nil }
    return text.uppercased()
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"):
      true
    default: false
    }
  }

  private static func hexadecimal(_ number: UInt64) -> String {
    let digits = String(number, radix: 16, uppercase: true)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
