// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import JSON
internal import Testing

@Suite struct JSONReaderTests {
  private func read(_ text: String) throws -> JSONValue {
    try JSONValue(reading: Array(text.utf8))
  }

  /// Why it is not read; nil if it is.
  private func reason(_ bytes: [UInt8]) -> String? {
    do throws(DecodingError) {
      _ = try JSONValue(reading: bytes)
      return nil
    } catch .dataCorrupted(let context) {
      return context.debugDescription
    } catch {
      return "another error"
    }
  }

  @Test(
    arguments: [
      ("null", .null), ("true", .bool(true)), ("false", .bool(false)), (" \t\r\n5 \n", .integer(5)),
      ("0", .integer(0)), ("-0", .integer(0)), ("-1", .integer(-1)), ("1.0", .integer(1)),
      ("1e2", .integer(100)), ("1E+2", .integer(100)), ("12e-1", .number(1.2)), ("0.1", .number(0.1)),
      ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
      ("9223372036854775808", .unsigned(1 << 63)), ("18446744073709551615", .unsigned(.max)),
      ("18446744073709551616", .number(0x1p64)), ("-9223372036854775809", .number(-0x1p63)),
      ("9007199254740993.000", .integer(9_007_199_254_740_993)), ("1e17", .number(1e17)),
      ("0e999999", .integer(0)), ("0.000", .integer(0)),
      ("\"\"", .string("")), ("\"a b\"", .string("a b")), ("\"é€😀\"", .string("é€😀")),
      (#""\"\\\/\b\f\n\r\t""#, .string("\"\\/\u{8}\u{c}\n\r\t")),
      (#""x\u00e9\u20AC\ud83d\ude00\u0000y""#, .string("xé€😀\0y")),
      (#""\uD7FF\uE000\uFFFF\uDBFF\uDFFF""#, .string("\u{d7ff}\u{e000}\u{ffff}\u{10ffff}")),
      ("[]", .array([])), ("[ ]", .array([])),
      ("[1 , [ 2 ] ]", .array([.integer(1), .array([.integer(2)])])),
      ("{}", .object([:])), ("{ }", .object([:])),
      (#"{ "a" : 1 , "b" : { } }"#, .object(["a": .integer(1), "b": .object([:])])),
      (#"{"a":1,"a":2}"#, .object(["a": .integer(1)])),
      (#"{"\u0061":1,"a":2}"#, .object(["a": .integer(1)])),
    ] as [(String, JSONValue)])
  func isRead(text: String, value: JSONValue) throws {
    #expect(try read(text) == value)
  }

  @Test(arguments: [
    ("", "the text ends too early, at byte 0"), ("  ", "the text ends too early, at byte 2"),
    ("nul", "there is no value, at byte 0"), ("nulL", "there is no value, at byte 0"),
    ("True", "there is no value, at byte 0"), ("'a'", "there is no value, at byte 0"),
    ("NaN", "there is no value, at byte 0"), ("-Infinity", "a number lacks a digit, at byte 1"),
    ("+1", "there is no value, at byte 0"), (".5", "there is no value, at byte 0"),
    ("\u{feff}1", "there is no value, at byte 0"), ("/**/1", "there is no value, at byte 0"),
    ("\u{a0}1", "there is no value, at byte 0"), ("\u{c}1", "there is no value, at byte 0"),
    ("1 2", "there is something after the value, at byte 2"),
    ("nullx", "there is something after the value, at byte 4"),
    ("{}}", "there is something after the value, at byte 2"),
    ("1\0", "there is something after the value, at byte 1"),
    ("01", "a number has zeros before it, at byte 2"), ("-01", "a number has zeros before it, at byte 3"),
    ("00", "a number has zeros before it, at byte 2"), ("-", "a number lacks a digit, at byte 1"),
    ("1.", "a number lacks a digit, at byte 2"), ("1.e5", "a number lacks a digit, at byte 2"),
    ("1e", "a number lacks a digit, at byte 2"), ("1e+", "a number lacks a digit, at byte 3"),
    ("0x1", "there is something after the value, at byte 1"), ("1e400", "a number is too large, at byte 5"),
    ("-1e400", "a number is too large, at byte 6"), ("1e-999", "a number is too small, at byte 6"),
    ("0.1e-999", "a number is too small, at byte 8"),
    ("[1", "an array lacks a comma or its end, at byte 2"), ("[", "the text ends too early, at byte 1"),
    ("[,]", "there is no value, at byte 1"), ("[1,]", "there is no value, at byte 3"),
    ("[1 2]", "an array lacks a comma or its end, at byte 3"),
    ("[1}", "an array lacks a comma or its end, at byte 2"),
    ("{", "an object lacks a key, at byte 1"), ("{1:2}", "an object lacks a key, at byte 1"),
    ("{a:2}", "an object lacks a key, at byte 1"), (#"{"a"}"#, "a key lacks its colon, at byte 4"),
    (#"{"a":}"#, "there is no value, at byte 5"), (#"{"a":1,}"#, "an object lacks a key, at byte 7"),
    (#"{"a":1 "b":2}"#, "an object lacks a comma or its end, at byte 7"),
    (#"{"a":1]"#, "an object lacks a comma or its end, at byte 6"),
    ("\"", "a string does not end, at byte 1"), ("\"abc", "a string does not end, at byte 4"),
    (#""\"#, "a string does not end, at byte 2"), (#""\""#, "a string does not end, at byte 3"),
    (#""\u12"#, "a string does not end, at byte 5"),
    (#""\x""#, "a string contains an unknown escape, at byte 3"),
    (#""\u12g4""#, "a string contains an unknown escape, at byte 5"),
    (#""\u+123""#, "a string contains an unknown escape, at byte 3"),
    (#""\ud800""#, "a string contains half of a surrogate pair, at byte 7"),
    (#""\udc00""#, "a string contains half of a surrogate pair, at byte 7"),
    (#""\ud800\u0041""#, "a string contains half of a surrogate pair, at byte 13"),
    (#""\ud800\ud800""#, "a string contains half of a surrogate pair, at byte 13"),
    (#""\udc00\ud800""#, "a string contains half of a surrogate pair, at byte 7"),
    ("\"a\nb\"", "a string contains a control character, at byte 2"),
    ("\"\0\"", "a string contains a control character, at byte 1"),
  ])
  func isRefused(text: String, reason: String) {
    #expect(self.reason(Array(text.utf8)) == reason)
  }

  /// Stray continuation, overlong, surrogate, too large, cut off.
  @Test(arguments: [
    [0x80], [0xff], [0xc0, 0x80], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80],
    [0xe2, 0x82], [0xf0, 0x9f, 0x98],
  ])
  func invalidUTF8IsRefused(bytes: [UInt8]) {
    let quote = UInt8(ascii: "\"")
    #expect(reason([quote] + bytes + [quote])?.hasPrefix("a string is not valid UTF-8") == true)
    #expect(reason(Array(#"{"a\n"#.utf8) + bytes + Array(#"":1}"#.utf8)) != nil)
    #expect(reason(bytes + Array("1".utf8))?.hasPrefix("there is no value") == true)
  }

  @Test func depthIsLimited() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    _ = try read(nested(JSONText.depthLimit))
    #expect(
      reason(Array(nested(JSONText.depthLimit + 1).utf8))?.hasPrefix("values are nested too deeply") == true)
    let objects = String(repeating: #"{"a":"#, count: 500_000)
    #expect(reason(Array(objects.utf8))?.hasPrefix("values are nested too deeply") == true)
    let mixed = String(repeating: #"[{"a":"#, count: JSONText.depthLimit / 2 + 1)
    #expect(reason(Array(mixed.utf8))?.hasPrefix("values are nested too deeply") == true)
  }

  @Test func sizeIsLimited() throws {
    let space = [UInt8](repeating: 0x20, count: JSONText.sizeLimit - 1)
    #expect(try JSONValue(reading: space + [UInt8(ascii: "1")]) == .integer(1))
    #expect(reason(space + Array("12".utf8)) == "the text is too long, at byte 0")
  }

  @Test func numbersHaveLimits() throws {
    let zeros = String(repeating: "0", count: JSONText.numberLimit - 2)
    #expect(try read("0." + zeros) == .integer(0))
    #expect(reason(Array("0.0\(zeros)".utf8))?.hasPrefix("a number is too long") == true)
    #expect(reason(Array(("1" + zeros).utf8))?.hasPrefix("a number is too large") == true)
  }

  private struct Outer: Decodable {
    struct Inner: Decodable { let number: UInt8 }
    let list: [Inner]
  }

  /// Where an error is, and what it says.
  private func place(_ text: String) -> String {
    do {
      _ = try JSONText.decode(Outer.self, from: Array(text.utf8))
      return "read"
    } catch {
      guard let error = error as? DecodingError else { return "another error" }
      let context =
        switch error {
        case .keyNotFound(_, let context), .typeMismatch(_, let context), .valueNotFound(_, let context),
          .dataCorrupted(let context):
          context
        @unknown default: DecodingError.Context(codingPath: [], debugDescription: "an unknown error")
        }
      return context.codingPath.map(\.stringValue).joined(separator: "/") + ": " + context.debugDescription
    }
  }

  @Test func errorsSayWhere() {
    #expect(place(#"{"list":[{"number":1}]}"#) == "read")
    #expect(place("{}") == ": there is no field 'list'")
    #expect(place(#"{"list":[{"number":1},{}]}"#) == "list/Index 1: there is no field 'number'")
    #expect(
      place(#"{"list":[{"number":256}]}"#)
        == "list/Index 0/number: the number 256 does not fit into UInt8")
    #expect(
      place(#"{"list":[{"number":"1"}]}"#) == "list/Index 0/number: UInt8 is expected, and there is a string")
    #expect(
      place(#"{"list":[{"number":null}]}"#) == "list/Index 0/number: UInt8 is expected, and there is null")
    #expect(place(#"{"list":{}}"#) == "list: Array<Any> is expected, and there is an object")
  }
}
