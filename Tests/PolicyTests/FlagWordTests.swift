// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Section 5 of the rules: the words for flags, and the flags of Linux.
@Suite struct FlagWordTests {
  @Test(arguments: words)
  func everySpellingIsRead(row: String) throws {
    let cells = try Table.cells(row, 3)
    var flags = FileFlags(rawValue: try number(cells[0]))
    if cells[2] == "unknown" {
      let before = flags
      #expect(throws: UnknownFlag.self) { try flags.apply(words: cells[1]) }
      #expect(flags == before)
    } else {
      try flags.apply(words: cells[1])
      #expect(flags.rawValue == (try number(cells[2])))
    }
  }

  // before | words | after, in hexadecimal digits
  static let words = Table.rows(
    """
    0 | nodump | 1
    0 | uchg | 2
    0 | uchange | 2
    0 | uimmutable | 2
    0 | uappnd | 4
    0 | uappend | 4
    0 | opaque | 8
    0 | hidden | 8000
    0 | arch | 10000
    0 | archived | 10000
    0 | schg | 20000
    0 | schange | 20000
    0 | simmutable | 20000
    0 | sappnd | 40000
    0 | sappend | 40000
    0 | sunlnk | 100000
    0 | sunlink | 100000
    ffffffff | dump | fffffffe
    ffffffff | nouchg | fffffffd
    ffffffff | nouchange | fffffffd
    ffffffff | nouimmutable | fffffffd
    ffffffff | nouappnd | fffffffb
    ffffffff | nouappend | fffffffb
    ffffffff | noopaque | fffffff7
    ffffffff | nohidden | ffff7fff
    ffffffff | noarch | fffeffff
    ffffffff | noarchived | fffeffff
    ffffffff | noschg | fffdffff
    ffffffff | noschange | fffdffff
    ffffffff | nosimmutable | fffdffff
    ffffffff | nosappnd | fffbffff
    ffffffff | nosappend | fffbffff
    ffffffff | nosunlnk | ffefffff
    ffffffff | nosunlink | ffefffff
    0 | uchg,hidden | 8002
    0 | uchg hidden,,nodump | 8003
    2 | nouchg,hidden | 8000
    0 | uchg,nouchg | 0
    2 | nouchg,uchg | 2
    2 | | 2
    2 | , | 2
    0 | uchg,bogus | unknown
    2 | nouchg,bogus | unknown
    0 | UCHG | unknown
    0 | nonodump | unknown
    0 | nodumpx | unknown
    0 | no | unknown
    0 | nonouchg | unknown
    0 | restricted | unknown
    0 | compressed | unknown
    0 | datavault | unknown
    0 | uchg; | unknown
    """)

  @Test(arguments: printed)
  func flagsArePrintedInOrder(row: String) throws {
    let cells = try Table.cells(row, 2)
    let flags = FileFlags(rawValue: try number(cells[0]))
    #expect(flags.words == cells[1])
    #expect(FileFlags(words: cells[1])?.words == String(cells[1]))
  }

  static let printed = Table.rows(
    """
    0 |
    1 | nodump
    2 | uchg
    4 | uappnd
    8 | opaque
    8000 | hidden
    10000 | arch
    20000 | schg
    40000 | sappnd
    100000 | sunlnk
    8002 | uchg,hidden
    17800f | sappnd,arch,schg,sunlnk,uappnd,uchg,nodump,opaque,hidden
    80 |
    """)

  @Test func unknownWordsAreNamed() {
    var flags: FileFlags = []
    let error = #expect(throws: UnknownFlag.self) { try flags.apply(words: "uchg,bogus") }
    #expect(error?.word == "bogus")
    #expect(FileFlags(words: "uchg,bogus") == nil)
    #expect(FileFlags(words: "") == [])
  }

  @Test(arguments: linux)
  func linuxKnowsThreeFlags(row: String) throws {
    let cells = try Table.cells(row, 4)
    let flags = try Table.flags(cells[0])
    #expect(flags.linuxFlags == (try number(cells[1])))
    #expect(FileFlags(linux: try number(cells[2]), changing: flags) == (try Table.flags(cells[3])))
  }

  // flags | as lsattr shows them | what chattr asks for | flags afterwards
  static let linux = Table.rows(
    """
    - | 0 | 0 | -
    - | 0 | 10 | schg
    - | 0 | 20 | sappnd
    - | 0 | 40 | nodump
    - | 0 | 70 | schg,sappnd,nodump
    uchg | 10 | 10 | uchg
    uchg | 10 | 0 | -
    schg | 10 | 0 | -
    uchg,schg | 10 | 0 | -
    uchg,schg | 10 | 10 | uchg,schg
    uappnd | 20 | 20 | uappnd
    uappnd | 20 | 0 | -
    sappnd | 20 | 0 | -
    uappnd,sappnd | 20 | 30 | uappnd,sappnd,schg
    nodump | 40 | 0 | -
    nodump | 40 | 40 | nodump
    uchg | 10 | 30 | uchg,sappnd
    hidden,arch,opaque,sunlnk | 0 | 0 | hidden,arch,opaque,sunlnk
    hidden,uchg | 10 | 0 | hidden
    hidden | 0 | 10 | hidden,schg
    - | 0 | 80000 | -
    """)

  private func number(_ cell: Substring) throws -> UInt32 {
    guard let number = UInt32(cell, radix: 16) else { throw UnreadableRow(cell: cell) }
    return number
  }
}
