// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import ContentLines
internal import Testing

/// Lines, their parameters, and what their values say.
@Suite struct ContentLineTests {
  private static func lines(_ text: String) -> [ContentLine] {
    var reader = ContentLineReader(Array(text.utf8))
    var lines: [ContentLine] = []
    while let line = reader.next() { lines.append(line) }
    return lines
  }

  private static let texts: [(line: String, text: String)] = [
    ("NOTE:plain", "plain"), ("note:small letters", "small letters"), ("item1.NOTE:in a group", "in a group"),
    ("NOTE:", ""), ("NOTE:a:b;c,d", "a:b;c,d"), (#"NOTE:one\ntwo\Nthree"#, "one\ntwo\nthree"),
    (#"NOTE:\, \; \\ \:"#, #", ; \ :"#), (#"NOTE:C:\dir\"#, #"C:\dir\"#),
    ("NOTE:fol\n ded\n\tonce more", "foldedonce more"), ("NOTE:a\r\n b\r\nX:y", "ab"), ("NOTE:a\r b", "ab"),
    // Folded between the bytes of a letter, which RFC 5545 allows: see foldedWithinALetter.
    ("NOTE;ENCODING=QUOTED-PRINTABLE:caf=C3=A9=\n=21", "café!"),
    ("NOTE;QUOTED-PRINTABLE;CHARSET=UTF-8:=\n=C3=A9", "é"),
    ("NOTE;ENCODING=QUOTED-PRINTABLE:a=ZZ=4", "a=ZZ=4"),
    ("NOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=ISO-8859-1:=E9", "é"),
    ("NOTE;X=\"a:b;c,d\":value", "value"), ("NOTE;X=a,\"b\",c;Y=:value", "value"), ("NOTE;X:value", "value"),
    ("NOTE:100=\nX:y", "100="), ("\u{feff}NOTE:with a mark", "with a mark"),
  ]

  @Test(arguments: texts)
  func valueSays(line: String, text: String) {
    #expect(Self.lines(line).first?.text == text)
  }

  @Test(arguments: ["", "NOTE", ":value", ";X=1:value", "NO TE:value", "NOTE;X=1", ".:value", "é:value", "."])
  func noPropertyIsLeftOut(line: String) {
    #expect(Self.lines(line).isEmpty)
    #expect(Self.lines("\(line)\nNOTE:next").map(\.text) == ["next"])
  }

  @Test func foldedWithinALetter() {
    let bytes = Array("NOTE:caf".utf8) + [0xc3, 0x0d, 0x0a, 0x20, 0xa9]
    var reader = ContentLineReader(bytes)
    #expect(reader.next()?.text == "café")
    // What is no UTF-8 is seen to be that.
    var damaged = ContentLineReader(Array("NOTE:".utf8) + [0xff, 0x41])
    #expect(damaged.next()?.text == "\u{fffd}A")
  }

  @Test func parametersHaveNamesAndValues() throws {
    let line = try #require(
      Self.lines(#"TEL;type=home,"work, too";TYPE=^nx^'^^^q;PREF=1;CELL;X=";:":+49"#).first)
    #expect(line.name == "TEL")
    #expect(line.values(of: "TYPE") == ["home", "work, too", "\nx\"^^q", "CELL"])
    #expect(line.values(of: "X") == [";:"] && line.values(of: "Y").isEmpty)
    #expect(line.text == "+49")
  }

  @Test func partsAreSeparatedBySemicolons() throws {
    let line = try #require(Self.lines(#"N:Doe;John\;Jack;;Dr\\;"#).first)
    #expect(line.parts == ["Doe", "John;Jack", "", #"Dr\"#, ""])
    let many = try #require(Self.lines("N:" + String(repeating: ";", count: 1000)).first)
    #expect(many.parts.count == 33)
  }

  /// Nothing grows without end.
  @Test func everythingHasALimit() throws {
    let long = String(repeating: "x", count: 100_000)
    let line = try #require(Self.lines("NOTE:\(long)\n \(long)\nNEXT:a").first)
    #expect(line.text.utf8.count <= ContentLineReader.longestLine)
    #expect(Self.lines("NOTE:\(long)\nNEXT:a").map(\.name) == ["NOTE", "NEXT"])
    #expect(Self.lines("\(long):a\nNEXT:a").map(\.name) == ["NEXT"])
    let parameters = String(repeating: ";A=" + String(repeating: "b", count: 500), count: 100)
    let other = try #require(Self.lines("NOTE\(parameters):a").first)
    #expect(other.parameters.count == ContentLine.mostParameters)
    #expect(other.parameters.allSatisfy { $0.values.allSatisfy { $0.utf8.count <= 256 } })
    var allowance = TextAllowance()
    var taken = 0
    for _ in 0..<1000 { taken += allowance.take(long)?.utf8.count ?? 0 }
    #expect(taken == 12_000)
    #expect(allowance.take("") == nil)
  }

  @Test func textsControlNoTerminal() {
    var allowance = TextAllowance()
    #expect(allowance.take(" \u{1b}[2Ja\u{7}\u{85}b\n\tc \u{0}\n") == "[2Jab\n\tc")
    // Cut between letters.
    #expect(allowance.take("éé", atMost: 3) == "é")
    #expect(allowance.take(" \u{1}\n") == nil)
  }

  private static let moments: [(word: String, text: String?)] = [
    ("20240131", "2024-01-31"), ("20240131T101500", "2024-01-31T10:15:00"),
    ("20240131T101500Z", "2024-01-31T10:15:00Z"), ("20240131T235960Z", "2024-01-31T23:59:60Z"),
    ("2024013", nil), ("20241301", nil), ("20240100", nil), ("20240131T", nil), ("20240131T2400", nil),
    ("20240131T250000", nil), ("20240131T101500X", nil), ("20240131T101500ZZ", nil), ("", nil),
    ("2024a131", nil), ("--0131", nil), ("-0240131", nil), ("é0240131", nil), ("20240131t101500", nil),
  ]

  @Test(arguments: moments)
  func timesAreRead(word: String, text: String?) {
    #expect(Moment(word)?.text == text)
  }

  private static let dates: [(word: String, text: String?)] = [
    ("19850412", "1985-04-12"), ("1985-04-12", "1985-04-12"), ("--0412", "--04-12"), ("--04-12", "--04-12"),
    ("1985", nil), ("1985-04", nil), ("-----", nil), ("", nil), ("--1301", nil), ("198504120", nil),
  ]

  @Test(arguments: dates)
  func birthdaysAreRead(word: String, text: String?) {
    #expect(Moment.date(word) == text)
  }
}
