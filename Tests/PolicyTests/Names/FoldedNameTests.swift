// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Policy
internal import TestSupport
internal import Testing

@Suite struct FoldedNameTests {
  @Test(
    arguments: [
      ("Foo.TXT", "foo.txt"), ("cafe\u{301}", "CAF\u{C9}"), ("Straße", "STRASSE"), ("STRAẞE", "strasse"),
      ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("K", "\u{212A}"), ("ſ", "S"), ("Å", "\u{212B}"), ("ﬃ", "FFI"),
      ("ꭰ", "Ꭰ"), ("ᏼ", "Ᏼ"), ("İ", "i\u{307}"), ("한", "\u{1112}\u{1161}\u{11AB}"), ("𐐀", "𐐨"),
      ("α\u{345}\u{301}", "\u{1FB4}"), ("a\u{323}\u{307}", "A\u{307}\u{323}"),
    ])
  func oneName(one: String, other: String) {
    #expect(areOneName(Array(one.utf8), Array(other.utf8)))
  }

  @Test(
    arguments: [
      ("foo", "foo "), ("ı", "i"), ("Ａ", "Ａ\u{301}"), ("①", "1"), ("ﬁle", "flle"), ("é", "e"), ("i", "İ"),
      ("a", "Ａ"),
    ])
  func otherNames(one: String, other: String) {
    #expect(!areOneName(Array(one.utf8), Array(other.utf8)))
  }

  /// Not UTF-8, nothing that stands for a character, and too many marks.
  @Test func noNames() {
    for bytes: [UInt8] in [
      [0xff], [0x61, 0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf], [0xf4, 0x90, 0x80, 0x80],
      [0xef, 0xbf, 0xbf], [0xef, 0xb7, 0x90], [0xcd, 0xb8], [0x78, 0xf4, 0x8f, 0xbf, 0xbe],
      Array(("a" + String(repeating: "\u{301}", count: 31)).utf8),
    ] {
      #expect(foldedName(bytes) == nil, "\(bytes)")
    }
    #expect(foldedName(Array(("a" + String(repeating: "\u{301}", count: 30)).utf8)) != nil)
    #expect(foldedName(Array("\u{E000}".utf8)) != nil, "whose meaning is private has one")
  }

  /// Python's tables are of another version of Unicode, so what one of both does not know is left out.
  @Test func pythonSaysTheSame() throws {
    let temporary = try TemporaryDirectory()
    let result = try Program.run([
      "python3", "-c",
      """
      import random, sys, unicodedata as u
      sys.stdout = open("\(temporary.appending("rows"))", "w")
      def nfd(s): return u.normalize("NFD", s)
      def fold(s): return nfd(nfd(s).casefold())
      known = [chr(c) for c in range(1, 0x110000) if u.category(chr(c)) not in ("Cn", "Cs")]
      for c in known: print(c.encode().hex(), fold(c).encode().hex())
      cased = [c for c in known if c.casefold() != c or u.combining(c) or nfd(c) != c]
      random.seed(2026)
      for _ in range(20000):
        s = "".join(random.choice(cased) for _ in range(random.randint(2, 9)))
        print(s.encode().hex(), fold(s).encode().hex())
      """,
    ])
    try #require(result.status == 0, "\(result.errors)")
    let rows = try String(contentsOfFile: temporary.appending("rows"), encoding: .utf8).split(separator: "\n")
    try #require(rows.count > 250_000)
    var wrong: [Substring] = []
    for row in rows {
      let cells = row.split(separator: " ").map { bytes($0) }
      if foldedName(cells[0]) != cells[1] { wrong.append(row) }
    }
    #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(20))")
  }

  private func bytes(_ text: Substring) -> [UInt8] {
    let digits = text.utf8.map { $0 < 0x3a ? $0 - 0x30 : $0 - 0x57 }
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}
