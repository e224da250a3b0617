// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The identifiers of types that nobody has declared: `dyn.` and an extension in a notation of Apple's, so
/// that they are the same everywhere, and the extension can be had from them again.
package enum DynamicType {
  static let prefix = "dyn.a"
  /// That it conforms to public.data, and that an extension follows.
  private static let beginning = "?0=6:1="
  private static let digits: StaticString = "abcdefghkmnpqrstuvwxyz0123456789"

  package static func identifier(forExtension name: String) -> String {
    let count = beginning.utf8.count + name.utf8.count
    return String(unsafeUninitializedCapacity: prefix.utf8.count + (count * 8 + 4) / 5) { text in
      var end = 0
      func add(_ byte: UInt8) {
        text[end] = byte
        end += 1
      }
      for byte in prefix.utf8 { add(byte) }
      // Five bits each, and the last filled up.
      var (bits, count): (UInt32, UInt32) = (0, 0)
      func take(_ byte: UInt8) {
        bits = bits << 8 | UInt32(byte)
        count += 8
        while count >= 5 {
          count -= 5
          add(digits.utf8Start[Int(bits >> count & 31)])
        }
      }
      for byte in beginning.utf8 { take(byte) }
      for byte in name.utf8 { take(byte) }
      if count > 0 { add(digits.utf8Start[Int(bits << (5 - count) & 31)]) }
      return end
    }
  }

  /// Nil for what is no such identifier, or stands for something other than an extension of files.
  package static func nameExtension(of identifier: String) -> String? {
    let identifier = identifier.lowercased()
    guard identifier.hasPrefix(prefix), identifier.utf8.count <= 200 else { return nil }
    let digits = UnsafeBufferPointer(start: self.digits.utf8Start, count: 32)
    var (bits, count): (UInt32, UInt32) = (0, 0)
    var bytes: [UInt8] = []
    for digit in identifier.utf8.dropFirst(prefix.utf8.count) {
      guard let value = digits.firstIndex(of: digit) else { return nil }
      bits = bits << 5 | UInt32(value)
      count += 5
      guard count >= 8 else { continue }
      count -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> count))
      bits &= (1 << count) - 1
    }
    guard let text = String(validating: bytes, as: UTF8.self), text.hasPrefix(beginning),
      let name = NameExtension.declared(String(text.dropFirst(beginning.utf8.count))),
      self.identifier(forExtension: name) == identifier
    else { return nil }
    return name
  }
}
