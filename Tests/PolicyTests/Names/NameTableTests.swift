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
