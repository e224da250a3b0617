// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

/// A number with a unit, as people write sizes.
package enum SizeText {
  /// A text that is longer is none.
  static let longest = 24

  /// The number that a text begins with, and the rest; nil where it begins with none.
  static func parts(of text: String) -> (number: Int64, unit: String)? {
    guard text.utf8.count <= longest else { return nil }
    let digits = text.utf8.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard let number = Int64(String(decoding: digits, as: UTF8.self)) else { return nil }
    return (number, String(decoding: text.utf8.dropFirst(digits.count), as: UTF8.self))
  }

  /// The bytes that a text stands for, as 10G; nil where it is no size.
  package static func bytes(of text: String) -> Int64? {
    guard let (number, unit) = parts(of: text), let factor = factor(of: unit) else { return nil }
    let bytes = number.multipliedReportingOverflow(by: factor)
    return bytes.overflow ? nil : bytes.partialValue
  }

  /// How many bytes a unit stands for; nil for what is none.
  static func factor(of unit: String) -> Int64? {
    switch unit.uppercased() {
    case "": 1
    case "K", "KIB": 1 << 10
    case "M", "MIB": 1 << 20
    case "G", "GIB": 1 << 30
    case "T", "TIB": 1 << 40
    default: nil
    }
  }
}
