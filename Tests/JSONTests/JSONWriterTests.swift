// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import JSON
internal import Testing

/// What is written is what Foundation's encoder has written, byte for byte.
@Suite struct JSONWriterTests {
  struct Everything: Codable, Equatable {
    enum Word: String, Codable { case one, two }
    struct Part: Codable, Equatable {
      var name = "part"
      var list: [Int] = []
    }

    var text = "a/b \"quoted\" \\ \u{7f}\u{1}\u{8}\u{c}\u{1f}\n\r\t é e\u{301} \u{2028} 😀"
    var empty = ""
    var truth = true
    var lie = false
    var bytes: [UInt8] = [0, 127, 255]
    var int8 = Int8.min
    var int16 = Int16.min
    var int32 = Int32.min
    var int64 = Int64.min
    var int = Int.max
    var uint8 = UInt8.max
    var uint16 = UInt16.max
    var uint32 = UInt32.max
    var uint64 = UInt64.max
    var uint = UInt.max
    var doubles = [
      0, -0.0, 1, -1, 0.1, 1.5, 1e-7, 1e15, 0x1p53, 0x1p53 + 2, 1e16, 1e17, 1e20, 1e300, .pi, 2.5e-308,
    ]
    var floats: [Float] = [0.1, 16_777_216, -2.5, .pi]
    var missing: String?
    var present: Int? = 5
    var holes: [Int?] = [1, nil, 3]
    var word = Word.two
    var part = Part()
    var parts = [Part(), Part(name: "x/y", list: [1, 2])]
    var noParts: [Part] = []
    var table = [
      "b": 1, "a": 2, "B": 3, "a10": 4, "a9": 5, "é": 6, "e\u{301}a": 7, "\u{ffff}": 8, "😀": 9, "": 10,
    ]
    var emptyTable: [String: Bool] = [:]
    var numbered = [3: "three", -1: "minus one"]
    var nested = [[[1], []], []]
  }

  private func written(_ value: some Encodable, _ formatting: JSONEncoder.OutputFormatting) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = formatting
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  private func written(_ value: some Encodable, _ layout: JSONText.Layout) throws -> String {
    String(decoding: try JSONText.encode(value, layout), as: UTF8.self)
  }

  private func isAsFoundationWritesIt<Value: Codable & Equatable>(_ value: Value) throws {
    let compact = try (here: written(value, .compact), there: written(value, [.sortedKeys]))
    #expect(compact.here == compact.there)
    let formatting: JSONEncoder.OutputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    let pretty = try (here: written(value, .pretty), there: written(value, formatting))
    #expect(pretty.here == pretty.there)
    #expect(try JSONText.decode(Value.self, from: Array(written(value, .compact).utf8)) == value)
    #expect(try JSONText.decode(Value.self, from: Array(written(value, .pretty).utf8)) == value)
    #expect(try JSONDecoder().decode(Value.self, from: Data(written(value, .compact).utf8)) == value)
  }

  @Test func everything() throws {
    try isAsFoundationWritesIt(Everything())
    try isAsFoundationWritesIt([Everything(), Everything()])
  }

  @Test func scalarsAlone() throws {
    try isAsFoundationWritesIt("text")
    try isAsFoundationWritesIt(5)
    try isAsFoundationWritesIt(true)
    try isAsFoundationWritesIt(0.5)
    try isAsFoundationWritesIt([Int]())
    try isAsFoundationWritesIt([String: Int]())
    try isAsFoundationWritesIt([Optional<String>.none])
  }

  @Test func everyCharacterOfASCII() throws {
    for byte in UInt8(0)..<0x80 {
      try isAsFoundationWritesIt("-\(Unicode.Scalar(byte))-")
      try isAsFoundationWritesIt(["-\(Unicode.Scalar(byte))-": 1])
    }
  }

  @Test func whatIsNoNumberIsRefused() {
    for number in [Double.infinity, -.infinity, .nan] {
      #expect(throws: EncodingError.self) { try JSONText.encode([number]) }
      #expect(throws: EncodingError.self) { try JSONText.encode(["x": Float(number)]) }
    }
  }

  /// Containers of their own for parts, encoded in any order.
  struct Parts: Codable, Equatable {
    var numbers = [1, 2]
    var name = "x"

    enum Key: CodingKey { case list, inner, name, base, empty }

    init() {}

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: Key.self)
      var list = try fields.nestedUnkeyedContainer(forKey: .list)
      numbers = [try list.decode(Int.self)]
      var innermost = try list.nestedUnkeyedContainer()
      numbers.append(try innermost.decode(Int.self))
      #expect(try list.nestedContainer(keyedBy: Key.self).decode(Bool.self, forKey: .name))
      #expect(try list.superDecoder().singleValueContainer().decode(Bool.self) == false)
      #expect(try list.decodeNil() && list.isAtEnd && list.count == 5)
      let inner = try fields.nestedContainer(keyedBy: Key.self, forKey: .inner)
      name = try inner.decode(String.self, forKey: .name)
      #expect(try fields.superDecoder().singleValueContainer().decode(Int.self) == 7)
      #expect(try fields.superDecoder(forKey: .base).singleValueContainer().decode(Int.self) == 8)
      #expect(try fields.decodeNil(forKey: .empty))
    }

    func encode(to encoder: any Encoder) throws {
      var fields = encoder.container(keyedBy: Key.self)
      var list = fields.nestedUnkeyedContainer(forKey: .list)
      try list.encode(numbers[0])
      var inner = fields.nestedContainer(keyedBy: Key.self, forKey: .inner)
      var innermost = list.nestedUnkeyedContainer()
      var object = list.nestedContainer(keyedBy: Key.self)
      try inner.encode(name, forKey: .name)
      try object.encode(true, forKey: .name)
      try innermost.encode(numbers[1])
      var last = list.superEncoder().singleValueContainer()
      try last.encode(false)
      try list.encodeNil()
      var base = fields.superEncoder().singleValueContainer()
      try base.encode(7)
      var other = fields.superEncoder(forKey: .base).singleValueContainer()
      try other.encode(8)
      try fields.encodeNil(forKey: .empty)
    }
  }

  @Test func nestedContainers() throws {
    try isAsFoundationWritesIt(Parts())
    try isAsFoundationWritesIt([[Parts()]])
  }

  @Test func fieldsOfAValue() throws {
    struct Report: Encodable {
      var count = 5
      var share = 0.5
      var whole = 2.0
      var large = UInt64.max
      var names = ["a"]
    }
    #expect(
      JSONValue.fields(of: Report()) == [
        "count": .integer(5), "share": .number(0.5), "whole": .integer(2), "large": .unsigned(.max),
        "names": .array([.string("a")]),
      ])
    #expect(JSONValue.fields(of: 5) == [:])
    let value = JSONValue.object(JSONValue.fields(of: Report()))
    // By way of coders that know nothing of this type.
    #expect(try JSONDecoder().decode(JSONValue.self, from: JSONEncoder().encode(value)) == value)
  }
}
