// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// The part of a name that says what a file is: what follows the last period.
package enum NameExtension {
  /// Longer ones say nothing.
  package static let limit = 64

  /// In lower case (of ASCII); nil where there is none.
  ///
  /// Periods that only begin a name hide it (`.bashrc`), and what has a blank in it is a sentence
  /// (`Chapter 1. The End`).
  package static func of(_ name: UnsafeBufferPointer<UInt8>) -> String? {
    let period = UInt8(ascii: ".")
    guard let last = name.lastIndex(of: period), last + 1 < name.count, name.count - last - 1 <= limit,
      name[..<last].contains(where: { $0 != period })
    else { return nil }
    let found = UnsafeBufferPointer(rebasing: name[(last + 1)...])
    for byte in found where !isAllowed(byte) { return nil }
    return String(unsafeUninitializedCapacity: found.count) { buffer in
      for index in 0..<found.count { buffer[index] = lowercased(found[index]) }
      return found.count
    }
  }

  package static func of(_ name: String) -> String? {
    var name = name
    return name.withUTF8(of)
  }

  /// An extension as it is declared, with or without a period before it; nil for one that no name can have.
  package static func declared(_ text: String) -> String? {
    let text = text.utf8.first == UInt8(ascii: ".") ? text.dropFirst() : Substring(text)
    // A name that has it, so that both are judged alike.
    guard !text.utf8.contains(UInt8(ascii: ".")) else { return nil }
    return of("x.\(text)")
  }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte != 0x7f && byte != UInt8(ascii: "/")
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
  }
}
