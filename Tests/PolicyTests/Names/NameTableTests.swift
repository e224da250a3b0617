// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

@Suite struct NameTableTests {
  @Test func tablesAreComplete() {
    #expect(FolderNames.languages.count >= 10)
    for language in FolderNames.languages {
      let names = FolderNames.names.compactMap { FolderNames.name(of: $0, in: language) }
      #expect(names.count == FolderNames.names.count, "\(language)")
      #expect(names.allSatisfy { !$0.isEmpty && $0.sanitized == $0 && !$0.hasPrefix(" ") }, "\(language)")
      // In one directory no two have the same name.
      let inHome = ["Desktop", "Documents", "Downloads", "Library", "Movies", "Music", "Pictures", "Public"]
      #expect(Set(inHome.compactMap { FolderNames.name(of: $0, in: language) }).count == inHome.count)
    }
  }

  @Test(
    arguments: [
      (["LANG": "de_AT.UTF-8"], ["de-AT", "de_AT", "de"]),
      (["LANG": "de_DE", "LC_ALL": "fr"], ["fr"]),
      (["LANG": "de", "LC_MESSAGES": "sr_RS@latin"], ["sr-RS", "sr_RS", "sr"]),
      (["LANG": "en_US.UTF-8", "LANGUAGE": "ja:de"], ["ja", "de"]),
      (["LANG": "C.UTF-8", "LANGUAGE": "de"], []), (["LC_ALL": "POSIX", "LANG": "de"], []), ([:], []),
      (["LC_ALL": "", "LANG": "de"], ["de"]), (["LANG": "../../x"], []),
      (["LANG": "no_NO"], ["no-NO", "no_NO", "nb", "no"]),
      (["LANG": "zh_HK"], ["zh-HK", "zh_HK", "zh-Hant", "zh"]), (["LANG": "zh"], ["zh-Hans", "zh"]),
      (["LANG": "zh-hant-TW"], ["zh-Hant-TW", "zh_Hant_TW", "zh-Hant", "zh"]),
    ] as [([String: String], [String])])
  func languagesAreThoseOfTheEnvironment(environment: [String: String], expected: [String]) {
    #expect(Languages(environment: environment).names == expected)
  }

  /// Each limit of a list of languages, and what is just beyond it.
  @Test func languagesHaveTheirLimits() {
    let words = ["de", "fr", "it", "es", "nl", "pt", "sv", "da", "fi"]
    #expect(Languages(list: words.prefix(8).joined(separator: ":")).names == Array(words.prefix(8)))
    #expect(Languages(list: words.joined(separator: ":")).names == Array(words.prefix(8)))
    // What is no language counts, so that nobody has a list searched without end.
    #expect(Languages(list: (Array(repeating: "x", count: 20) + ["de"]).joined(separator: ":")).names == [])
    #expect(
      Languages(list: (Array(repeating: "x", count: 7) + ["de", "fr"]).joined(separator: ":")).names == ["de"]
    )
    for (word, isOne) in [
      ("d", false), ("de", true), ("gsw", true), ("abcd", false), ("de-abcdefgh", true),
      ("de-abcdefghi", false), ("de-", false), ("de-a-b-c", true),
      ("de-abcdefgh-abcdefgh-abcdefgh-ab", true), ("de-abcdefgh-abcdefgh-abcdefgh-abc", false),
    ] {
      #expect((Languages(word) != nil) == isOne, "\(word)")
    }
  }

  @Test(arguments: [
    (String(repeating: "a", count: 64), true), (String(repeating: "a", count: 65), false), ("", false),
    ("a b", false), ("\u{7f}", false), ("!", true),
  ])
  func extensionsHaveTheirLimits(text: String, isOne: Bool) {
    #expect((NameExtension.of("x.\(text)") == text) == isOne)
    #expect((NameExtension.declared(text) == text) == isOne)
  }

  @Test func lettersHaveAtMostFourMarks() {
    let mark = "\u{301}"
    #expect(DisplayName.isReadable("a" + String(repeating: mark, count: 4) + "b"))
    #expect(!DisplayName.isReadable("a" + String(repeating: mark, count: 5) + "b"))
    #expect(!DisplayName.isReadable(String(repeating: mark, count: 4)))
    #expect(!DisplayName.isReadable(" \u{2800}") && DisplayName.isReadable(" \u{2800}x"))
  }

  @Test func finderInfoHasItsBitsWhereAMacHasThem() {
    var info = FinderInfo()
    #expect(info.isEmpty && info.bytes.count == 32)
    info[.hidesExtension] = true
    info[.isInvisible] = true
    #expect(Array(info.bytes[8...9]) == [0x40, 0x10] && !info[.isPackage])
    info[.isInvisible] = false
    info[.isPackage] = true
    #expect(Array(info.bytes[8...9]) == [0x20, 0x10] && FinderInfo(info.bytes) == info)
    #expect(FinderInfo(Array(repeating: 0xff, count: 31)).isEmpty)
  }

  @Test func whatIsHidden() {
    var invisible = FinderInfo()
    invisible[.isInvisible] = true
    #expect(DisplayName.isHidden(".a".utf8, [], FinderInfo()))
    #expect(DisplayName.isHidden("a".utf8, .hidden, FinderInfo()))
    #expect(DisplayName.isHidden("a".utf8, [], invisible))
    #expect(!DisplayName.isHidden("a".utf8, .opaque, FinderInfo()))
  }
}
