// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

extension JSONReader {
  /// Reads a number, in the smallest of the cases that hold it.
  mutating func number() throws(DecodingError) -> JSONValue {
    let start = position
    let isNegative = takes(UInt8(ascii: "-"))
    let isZero = next == UInt8(ascii: "0")
    let digits = try digits()
    guard !isZero || digits.count == 1 else { throw error("a number has zeros before it") }
    var isWhole = true
    if takes(UInt8(ascii: ".")) {
      isWhole = bytes[try self.digits()].allSatisfy { $0 == UInt8(ascii: "0") }
    }
    let mantissa = bytes[digits.lowerBound..<position]
    if takes(UInt8(ascii: "e")) || takes(UInt8(ascii: "E")) {
      isWhole = false
      _ = takes(UInt8(ascii: "+")) || takes(UInt8(ascii: "-"))
      _ = try self.digits()
    }
    guard position - start <= JSONText.numberLimit else { throw error("a number is too long") }
    if isWhole, let number = Self.whole(bytes[digits], isNegative: isNegative) { return number }
    // As a Double it is the nearest that there is, unless that is infinite, or zero for something else.
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    guard let number = Double(text), let value = JSONValue(number) else {
      throw error("a number is too large")
    }
    guard number != 0 || !mantissa.contains(where: { (UInt8(ascii: "1")...UInt8(ascii: "9")).contains($0) })
    else { throw error("a number is too small") }
    return value
  }

  static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

  /// Where there are digits, at least one.
  private mutating func digits() throws(DecodingError) -> Range<Int> {
    let start = position
    while let byte = next, Self.isDigit(byte) { position += 1 }
    guard position > start else { throw error("a number lacks a digit") }
    return start..<position
  }

  /// Nil if it is too large for any kind of whole number.
  private static func whole(_ digits: ArraySlice<UInt8>, isNegative: Bool) -> JSONValue? {
    var magnitude: UInt64 = 0
    for digit in digits {
      let (product, isTooLarge) = magnitude.multipliedReportingOverflow(by: 10)
      let (sum, isTooLargeNow) = product.addingReportingOverflow(UInt64(digit & 0x0f))
      guard !isTooLarge, !isTooLargeNow else { return nil }
      magnitude = sum
    }
    if isNegative {
      // The smallest integer has no positive counterpart.
      guard magnitude <= Int64.min.magnitude else { return nil }
      return .integer(Int64(truncatingIfNeeded: 0 &- magnitude))
    }
    return Int64(exactly: magnitude).map { .integer($0) } ?? .unsigned(magnitude)
  }
}
