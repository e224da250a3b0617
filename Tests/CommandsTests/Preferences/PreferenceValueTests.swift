// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import JSON
internal import PropertyLists
internal import Testing

/// Values as they are typed, with the words of `defaults` of a Mac.
@Suite struct PreferenceValueTests {
  private func value(_ words: String) -> String? {
    guard
      case .replace(let value)? = try? PreferenceValue.change(words.split(separator: " ").map(String.init))
    else { return nil }
    return value.described
  }

  @Test(
    arguments: [
      ("word", "word"), ("-string -int", "-int"), ("-int -5", "-5"),
      ("-integer 18446744073709551615", "18446744073709551615"), ("-float 0.5", "\"0.5\""), ("-float 2", "2"),
      ("-bool YES", "1"), ("-boolean false", "0"), ("-data 00fF", "{length = 2, bytes = 0x00ff}"),
      ("-date 2026-01-31T23:59:59Z", "\"2026-01-31 23:59:59 +0000\""), ("-array", "(\n)"),
      ("-array a -int 1 -string -x", "(\n    a,\n    1,\n    \"-x\"\n)"), ("-dict", "{\n}"),
      ("-dict b -bool 1 a x", "{\n    a = x;\n    b = 1;\n}"), ("-dict a x a y", "{\n    a = y;\n}"),
    ])
  func typesAreThoseOfAMac(words: String, shown: String) {
    #expect(value(words) == shown)
  }

  @Test(
    arguments: [
      "", "a b", "-string", "-int", "-int 1.5", "-int 18446744073709551616", "-int x", "-float x",
      "-bool maybe",
      "-date tomorrow", "-date 2026-02-30T00:00:00Z", "-data 0", "-data xx", "-data 0ä", "-dict a",
      "-array -int",
      "-array -array a", "-dict a -dict b c", "-int 1 2",
    ])
  func whatIsNoValue(words: String) {
    #expect(throws: PreferenceValue.Problem.self) {
      try PreferenceValue.change(words.split(separator: " ").map(String.init))
    }
  }

  @Test func datesHaveTheFormInWhichTheyAreShown() throws {
    guard case .replace(let date) = try PreferenceValue.change(["-date", "2026-01-31 23:59:59 +0000"]) else {
      return #expect(Bool(false))
    }
    #expect(date.described == "\"2026-01-31 23:59:59 +0000\"" && date.encodedText == "2026-01-31T23:59:59Z")
  }

  @Test func domainsAreNamesOfFiles() {
    for word in ["", ".x", "a/b", "../x", "-x", "a\nb", "a\u{202e}b", String(repeating: "x", count: 201)] {
      #expect(PreferenceDomain(word) == nil, "\(word)")
    }
    for word in ["NSGlobalDomain", "-g", "-globalDomain", "Apple Global Domain"] {
      #expect(PreferenceDomain(word)?.fileName == ".GlobalPreferences.plist")
    }
    #expect(PreferenceDomain(fileName: ".GlobalPreferences.plist") == .global)
    #expect(PreferenceDomain(fileName: "com.example.plist")?.name == "com.example")
    for name in ["x", ".plist", ".x.plist.new", "NSGlobalDomain.plist", ".x.plist"] {
      #expect(PreferenceDomain(fileName: name) == nil, "\(name)")
    }
  }

  @Test func listsAreShownAsOnAMac() throws {
    let list = PropertyList(entries: [
      ("a b", .string("ä\"\\\n\u{202e}😀")),
      ("inner", PropertyList(entries: [("x", .array([.array([.string("")])]))])),
    ])
    #expect(
      list.described == #"""
        {
            "a b" = "\U00e4\"\\\n\U202e\Ud83d\Ude00";
            inner =     {
                x =         (
                                (
                        ""
                    )
                );
            };
        }
        """#)
    #expect(PropertyList.string("as it is").described == "as it is")
  }

  @Test func programsGetJSON() throws {
    let list = PropertyList(entries: [
      ("d", .data([1, 2])), ("t", .date(0)), ("b", .boolean(true)), ("r", .real(.nan)),
      ("u", .unsigned(.max)),
    ])
    #expect(
      JSONValue(list)
        == .object([
          "d": .string("AQI="), "t": .string("2001-01-01T00:00:00Z"), "b": .bool(true), "r": .null,
          "u": .unsigned(.max),
        ]))
  }
}
