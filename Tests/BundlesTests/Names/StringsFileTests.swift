// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import PropertyLists
internal import TestSupport
internal import Testing

/// Tables of texts, as Apple's reader of old property lists reads them.
@Suite struct StringsFileTests {
  private func text(_ file: String) throws -> String? { try StringsFile.text(of: "A", in: Array(file.utf8)) }

  @Test(
    arguments: [
      ("\"A\" = \"x\";", "x"), ("A = x;", "x"), ("A;", "A"), ("{ \"A\" = 'x'; }\n", "x"), ("A=1;A=2;", "2"),
      ("/* a */ A /* b */ = // c\n \"x\";", "x"), ("A=\"x\"; /* no end", "x"), ("A=x;;", "x"),
      ("A=\"x\"; \"B", "x"), ("A=x; }", "x"), ("A=\"\\\"\\\\\\n\\q\";", "\"\\\nq"), ("A=\"\\101b\";", "Ab"),
      ("A=\"\\344\\08\";", "î\u{0}8"), ("A=\"\\U00e4\\Ud83d\\Ude00\";", "ä😀"), ("B=(1,{c=d;},); A=x;", "x"),
      ("B=<0f 1>;A=x;", "x"), ("A=//y\n/x;", "/x"), ("A = \"\";", ""),
    ])
  func whatATableSays(file: String, expected: String) throws {
    #expect(try text(file) == expected)
  }

  @Test(arguments: ["", " \n", "/* */", "B=x;", "A=(1);", "A={b=c;};", "A=<0f>;", "{}"])
  func whatATableDoesNotSay(file: String) throws {
    #expect(try text(file) == nil)
  }

  @Test(
    arguments: [
      "A", "A = x", "A = ;", "A = b c;", "A = ä;", "#A=x;", "(A, x)", "<0f>", "{A=x;", "{A=x;} B", "A=\"x",
      "A=\"\\", "A=\"\\U\";", "A=\"\\Ud83d\";", "A=\"\\Ude00\";", "A=\"\\777\";", "A=(x y);",
      "A=" + String(repeating: "(", count: 200),
    ])
  func whatIsNoTable(file: String) {
    #expect(throws: PropertyListError.self) { try text(file) }
  }

  @Test func allEncodingsAndForms() throws {
    let file = "\"A\" = \"Ä😀\";"
    for (mark, encoding) in [
      ([0xff, 0xfe], String.Encoding.utf16LittleEndian), ([], .utf16LittleEndian),
      ([0xfe, 0xff], .utf16BigEndian), ([], .utf16BigEndian), ([0xef, 0xbb, 0xbf], .utf8), ([], .utf8),
    ] as [([UInt8], String.Encoding)] {
      let bytes = mark + Array(try #require(file.data(using: encoding)))
      #expect(try StringsFile.text(of: "A", in: bytes) == "Ä😀", "\(encoding) \(mark)")
    }
    for format in [PropertyListSerialization.PropertyListFormat.xml, .binary] {
      let bytes = Array(
        try PropertyListSerialization.data(fromPropertyList: ["A": "Ä😀"], format: format, options: 0))
      #expect(try StringsFile.text(of: "A", in: bytes) == "Ä😀")
    }
  }

  @Test func whatIsTooLongOrNoTextIsRefused() {
    let long = Array("A = x; //".utf8) + Array(repeating: UInt8(ascii: "x"), count: StringsFile.sizeLimit)
    for bytes in [long, [0xc3], [0xff, 0xfe, 0, 0xd8], Array("<?xml".utf8), Array("bplist00".utf8)] {
      #expect(throws: PropertyListError.self) { try StringsFile.text(of: "A", in: bytes) }
    }
  }

  /// Each answer is one or an error, and comes soon.
  @Test func damageNeverStopsIt() {
    var random = SeededRandom(seed: 7)
    let sample = Array("{ A = \"x\\U00e4\\101\"; /* c */ B = (1, {c = <0f>;}); // d\n 'e' = f; }".utf8)
    for _ in 0..<20_000 {
      var bytes = sample
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      bytes.removeLast(Int.random(in: 0..<8, using: &random))
      _ = try? StringsFile.text(of: "A", in: bytes)
    }
  }
}
