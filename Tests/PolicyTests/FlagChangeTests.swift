// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Policy
internal import Testing

/// Changes of flags as a person writes them.
@Suite struct FlagChangeTests {
  @Test(
    arguments: [
      ("uchg", [], .userImmutable), ("uchg,hidden", [], [.userImmutable, .hidden]),
      ("nouchg", [.userImmutable, .hidden], .hidden), ("uchg,nohidden", [.hidden], .userImmutable),
      ("dump", [.noDump], []), ("nodump", [], .noDump),
      // A sign holds until there is another.
      ("+uchg,hidden", [], [.userImmutable, .hidden]), ("-uchg,hidden", [.userImmutable, .hidden], []),
      ("-uchg,+hidden", [.userImmutable], .hidden), ("+nodump", [], .noDump), ("-nodump", [.noDump], []),
      // One after the other.
      ("uchg,nouchg", [], []), ("nouchg,uchg", [], .userImmutable), ("+uchg,-uchg", [], []),
      // What is not named stays.
      ("schg", [.archived], [.archived, .systemImmutable]), ("noschg", [.archived], .archived),
      (",uchg,", [], .userImmutable),
    ] as [(String, FileFlags, FileFlags)])
  func changes(text: String, before: FileFlags, after: FileFlags) throws {
    #expect(try FlagChange(text).applied(to: before) == after)
  }

  @Test(
    arguments: [
      ("", ""), (",", ","), (" ", " "), ("fly", "fly"), ("uchg,fly", "fly"), ("+", "+"), ("-", "-"),
      ("+-uchg", "-uchg"),
      ("+nouchg", "+nouchg"), ("-nouchg", "-nouchg"), ("-uchg,nohidden", "-nohidden"), ("+dump", "+dump"),
      ("nofly", "nofly"), ("no", "no"), ("UCHG", "UCHG"),
    ])
  func whatIsNoChange(text: String, word: String) {
    let error = #expect(throws: UnknownFlag.self) { try FlagChange(text) }
    #expect(error?.word == word)
  }
}
