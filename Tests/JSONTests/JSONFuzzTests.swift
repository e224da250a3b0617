// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import JSON
internal import TestSupport
internal import Testing

/// Random values, and bytes that were JSON before something happened to them.
@Suite struct JSONFuzzTests {
  /// All inputs of a run.
  static let inputs = fuzzInputs(usually: 40_000)

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func randomValuesComeBack(seed: UInt64) throws {
    var source = RandomJSON(seed: seed)
    for _ in 0..<300 {
      let value = source.value()
      for layout in [JSONText.Layout.compact, .pretty] {
        let bytes = try JSONText.encode(value, layout)
        #expect(try JSONValue(reading: bytes) == value)
        let other = try JSONDecoder().decode(JSONValue.self, from: Data(bytes))
        #expect(isSame(value, other), "\(other) is not \(value)")
      }
      #expect(try JSONValue(reading: source.text(of: value)) == value)
      #expect(try JSONValue(encoding: value) == value && value.decode(JSONValue.self) == value)
    }
  }

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func damagedTextsAreReadAsByFoundation(seed: UInt64) throws {
    var source = RandomJSON(seed: seed)
    var samples: [[UInt8]] = []
    while samples.count < 60 {
      let value = source.value(depth: 3)
      for bytes in [try JSONText.encode(value), source.text(of: value)] where bytes.count < 400 {
        samples.append(bytes)
      }
    }
    var random = SeededRandom(seed: seed)
    var (accepted, refused) = (0, 0)
    for _ in 0..<(Self.inputs / 4) {
      var bytes = samples.randomElement(using: &random) ?? []
      for _ in 0..<Int.random(in: 1...3, using: &random) { JSONDamage.act(&bytes, samples, &random) }
      let other = try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
      let here = Result { () throws(DecodingError) in try JSONValue(reading: bytes) }
      let text = String(decoding: bytes, as: UTF8.self)
      switch (here, other) {
      case (.success(let value), let other):
        accepted += 1
        #expect(try JSONValue(reading: JSONText.encode(value)) == value, "\(text) is \(value)")
        let isAgreed = other.map { isSame(value, $0) } ?? isTiny(text)
        #expect(isAgreed, "\(text) is \(value) here and there \(String(describing: other))")
      case (.failure(let error), let other?):
        refused += 1
        #expect(isStricter(bytes, error), "\(text) is refused here, and is \(other) there: \(error)")
      case (.failure, nil): refused += 1
      }
    }
    #expect(accepted > Self.inputs / 100 && refused > Self.inputs / 100)
  }

  /// Foundation refuses numbers that are so small that a Double is less precise.
  private func isTiny(_ text: String) -> Bool { text.contains("e-3") }

  /// Whether this reader is stricter there by intent.
  private func isStricter(_ bytes: [UInt8], _ error: DecodingError) -> Bool {
    guard case .dataCorrupted(let context) = error else { return false }
    let reason = context.debugDescription
    // Encodings other than UTF-8, which Foundation guesses, and the mark of which it takes off.
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) || bytes.prefix(4).contains(0)
      || bytes.starts(with: [0xff, 0xfe])
    {
      return true
    }
    // It takes commas before the end of an object or an array, and very small numbers for zero.
    return reason.hasPrefix("an object lacks a key") || reason.hasPrefix("a number is too small")
      || reason.hasPrefix("there is no value")
        && String(decoding: bytes, as: UTF8.self).contains(/,\s*\]/)
  }

  /// Numbers may be in different cases, and Foundation cuts off fractions of those that a Double can't hold.
  private func isSame(_ one: JSONValue, _ other: JSONValue) -> Bool {
    switch (one, other) {
    case (.array(let one), .array(let other)):
      one.count == other.count && zip(one, other).allSatisfy { isSame($0, $1) }
    case (.object(let one), .object(let other)):
      one.count == other.count
        && one.allSatisfy { (key, value) in other[key].map { isSame(value, $0) } ?? false }
    case (.integer(let one), .number(let other)): Double(one) == other
    case (.unsigned(let one), .number(let other)): Double(one) == other
    case (.number(let one), .integer(let other)): abs(one - Double(other)) <= 2 * one.ulp
    case (.number(let one), .unsigned(let other)): abs(one - Double(other)) <= 2 * one.ulp
    default: one == other
    }
  }
}
