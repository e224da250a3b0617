// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import TestSupport
internal import Testing

@Suite struct SuggestionTests {
  private static let verbs = Verbs.names

  @Test(
    arguments: [
      ("mout", ["mount"]), ("uninstal", ["uninstall"]), ("isntall", ["install"]), ("STATUS", ["status"]),
      ("LS", ["ls"]), ("unmuont", ["unmount"]), ("revoek", ["revoke"]), ("gran", ["grant"]),
      // A third of the word, and no more than two letters.
      ("lx", []), ("l", []), ("", []), ("moouunt", ["mount"]), ("mooooont", []), ("nonsense", []),
      ("completionsxyz", []), ("grent", ["grant"]), ("grnats", ["grants"]),
      // Those that are equally close.
      ("grantz", ["grant", "grants"]),
    ])
  func closest(word: String, expected: [String]) {
    #expect(Suggestion.closest(to: word, among: Self.verbs).sorted() == expected)
  }

  @Test(
    arguments: [
      ("", "", 0), ("a", "", 1), ("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 1),
      ("abcd", "acbd", 1),
      ("ca", "abc", 3), ("mount", "mount", 0),
    ])
  func distance(one: String, other: String, expected: Int) {
    let (a, b) = (Array(one.unicodeScalars), Array(other.unicodeScalars))
    #expect(Suggestion.distance(a, b) == expected && Suggestion.distance(b, a) == expected)
  }

  /// A word with up to two letters changed is found again, and nothing further away is ever offered.
  @Test func nothingFarAwayIsOffered() {
    var random = SeededRandom(seed: 11)
    let letters = Array("abcdefghijklmnopqrstuvwxyz-".unicodeScalars)
    for _ in 0..<3000 {
      var word = Array((Self.verbs.randomElement(using: &random) ?? "").unicodeScalars)
      for _ in 0..<Int.random(in: 0...4, using: &random) {
        let letter = letters.randomElement(using: &random) ?? "a"
        let place = Int.random(in: 0...word.count, using: &random)
        if place < word.count, Bool.random(using: &random) {
          word[place] = letter
        } else {
          word.insert(letter, at: place)
        }
      }
      let text = String(String.UnicodeScalarView(word))
      for offered in Suggestion.closest(to: text, among: Self.verbs) {
        #expect(Suggestion.distance(word, Array(offered.unicodeScalars)) <= min(2, word.count / 3))
      }
    }
  }

  /// Words without an end cost nothing.
  @Test func longWordsAreNotCompared() {
    #expect(Suggestion.closest(to: String(repeating: "mount", count: 1 << 16), among: Self.verbs).isEmpty)
  }

  /// A word that people know from elsewhere must not stand before a command, and must lead to one.
  @Test func habitsLeadToCommands() throws {
    for word in [
      "start", "stop", "rm", "list", "create", "chmod", "logs", "set", "fsck", "running", "man", "cp",
    ] {
      #expect(!Self.verbs.contains(word))
      let advice = try #require(Habits.advice(for: word))
      for command in advice.matches(of: /'insula ([a-z-]+)( [a-z]+)?/) {
        #expect(Self.verbs.contains(String(command.output.1)), "\(advice)")
      }
    }
    #expect(Verbs.names.allSatisfy { Habits.advice(for: $0) == nil })
  }
}
