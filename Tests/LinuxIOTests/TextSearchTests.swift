// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import Testing

@Suite struct TextSearchTests {
  @Test(arguments: [
    ("abc", "", true), ("", "", true), ("", "a", false), ("abc", "abc", true), ("abc", "bc", true),
    ("abc", "ab", true), ("abc", "ac", false), ("aab", "ab", true), ("ab", "abc", false),
    ("x..y", "..", true),
    ("é", "e\u{301}", false), ("e\u{301}", "e", true),
  ])
  func includes(text: String, part: String, isThere: Bool) {
    #expect(text.includes(part) == isThere)
  }

  @Test(arguments: [
    ("", ""), ("a", "a"), ("'", "<>"), ("a'b''c", "a<>b<><>c"), ("é'", "é<>"), ("'\u{301}", "<>\u{301}"),
  ])
  func replaces(text: String, expected: String) {
    #expect(text.replacing(each: "'", by: "<>") == expected)
  }
}
