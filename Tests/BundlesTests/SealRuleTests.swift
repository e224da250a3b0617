// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Bundles
internal import CLinux
internal import Glibc
internal import PropertyLists
internal import TestSupport
internal import Testing

@Suite struct SealRuleTests {
  private func matches(_ pattern: String, _ path: String) throws -> Bool {
    var matcher = try RuleMatcher([SealRule(pattern)])
    return try matcher.rule(for: path.utf8) != nil
  }

  @Test(
    arguments: [
      ("^Resources/", "Resources/a", true), ("^Resources/", "x/Resources/a", false),
      ("Resources/", "x/Resources/a", true), ("a$", "ba", true),
      ("a$", "ab", false), (#".*\.dSYM($|/)"#, "a.dSYM", true), (#".*\.dSYM($|/)"#, "a.dSYM/b", true),
      (#".*\.dSYM($|/)"#, "a.dSYMs", false), ("^[^/]+$", "a", true), ("^[^/]+$", "a/b", false),
      ("^a{2,3}$", "aa", true),
      ("^a{2,3}$", "aaaa", false), ("^a{2,}$", "aaaa", true), ("^(a|bc)*d?$", "abcbc", true),
      ("^ä+$", "ää", true), ("^ä+$", "\u{e4}x", false),
      ("^[]a]$", "]", true), ("^[^]a]$", "]", false), ("^[a-c[:digit:]]$", "7", true), ("^[a-]$", "-", true),
      ("^()$", "a", false),
      ("a||b", "x", true), ("^A$", "a", false), ("$^", "a", false), ("(^|/)x", "a/x", true),
      ("(^|/)x", "ax", false), (#"^\$\^\."#, "$^.a", true),
    ])
  func patternsMatchAsPosixSays(pattern: String, path: String, expected: Bool) throws {
    #expect(try matches(pattern, path) == expected)
  }

  @Test(
    arguments: [
      "(", ")", "(a", "a)", "[", "[a", "*a", "+", "a|*", "a{", "a{1", "a{3,2}", "a{256}", "a{1,999}", "a{x}",
      "\\", "\\w", "\\1", "[[.a.]]", "[[=a=]]", "[[:foo:]]", "[z-a]",
      "[ä]", "a*****", String(repeating: "(", count: 100) + String(repeating: ")", count: 100),
      String(repeating: "a", count: 3000),
      "((((a{255}){255}){255}){255})", "(((((((((){255}){255}){255}){255}){255}){255}){255}){255})",
    ])
  func badPatternsAreRefused(pattern: String) {
    #expect { try RuleMatcher([SealRule(pattern)]) } throws: { ($0 as? Finding)?.kind == .badRules }
  }

  /// Most patterns take a state for each path that no other path needs; this one takes two to the power of
  /// its length.
  @Test func patternsWithTooManyStatesAreRefused() throws {
    var matcher = try RuleMatcher([SealRule("a.{40}b")])
    var random = SeededRandom(seed: 1)
    let path = (0..<100_000).map { _ in Bool.random(using: &random) ? UInt8(ascii: "a") : UInt8(ascii: "c") }
    #expect(throws: Finding.self) { try matcher.rule(for: path) }
  }

  /// Each path leads to states of thousands of steps that no other path leads to.
  @Test func largeStatesAreDroppedAndMadeAnew() throws {
    let letters = Array("abcdefghijklmnopqrst")
    var random = SeededRandom(seed: 3)
    let rules = letters.map { letter in
      let others = letters.shuffled(using: &random).prefix(15)
      return SealRule("[\(String(others))].{0,250}\(letter.uppercased())")
    }
    var matcher = try RuleMatcher(rules)
    var (most, drops) = (0, 0)
    for number in 0..<4 {
      let before = matcher.memory
      let path = String((0..<150).map { _ in letters.randomElement(using: &random) ?? "a" })
      #expect(try matcher.rule(for: path.utf8) == nil)
      for end in [number, 19 - number] {
        #expect(try matcher.rule(for: (path + letters[end].uppercased()).utf8) == end)
      }
      most = max(most, matcher.memory)
      if matcher.memory < before { drops += 1 }
    }
    #expect(most < 5 << 20)
    #expect(drops >= 1)
  }

  /// The C library's own matcher says the same of random patterns and paths.
  @Test func agreesWithTheCLibrary() throws {
    var random = SeededRandom(seed: 7)
    var positive = 0
    for _ in 0..<3000 {
      let pattern = Self.pattern(&random, depth: 0)
      var compiled = regex_t()
      guard regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) == 0 else { continue }
      defer { regfree(&compiled) }
      var matcher = try RuleMatcher([SealRule(pattern)])
      for _ in 0..<8 {
        let letters = Array("ab/.")
        let path = String(
          (0...Int.random(in: 0..<8, using: &random)).map { _ in letters.randomElement(using: &random) ?? "a"
          })
        let expected = regexec(&compiled, path, 0, nil, 0) == 0
        #expect(try (matcher.rule(for: path.utf8) != nil) == expected, "\(pattern) \(path)")
        if expected { positive += 1 }
      }
    }
    #expect(positive > 5000 && positive < 20000)
  }

  private static func pattern(_ random: inout SeededRandom, depth: Int) -> String {
    let branches = (0...(Int.random(in: 0..<4, using: &random) / 3)).map { _ -> String in
      var text = depth == 0 && Bool.random(using: &random) ? "^" : ""
      for _ in 0...Int.random(in: 0..<4, using: &random) {
        let atoms = ["a", "b", "/", ".", "\\.", "[^/]", "[ab]", "[.-a]"]
        text +=
          depth < 2 && Int.random(in: 0..<5, using: &random) == 0
          ? "(\(pattern(&random, depth: depth + 1)))" : atoms.randomElement(using: &random) ?? "a"
        text += ["", "", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}"].randomElement(using: &random) ?? ""
      }
      // Not in groups: what the C library makes of the end of a path repeated is not what POSIX says.
      return text + (depth == 0 && Int.random(in: 0..<4, using: &random) == 0 ? "$" : "")
    }
    return branches.joined(separator: "|")
  }

  @Test(
    arguments: [
      (.contents, "Info.plist", "omit"), (.contents, "PkgInfo", "omit"),
      (.contents, "version.plist", "plain"), (.contents, "MacOS/tool", "nested"),
      (.contents, "Frameworks/A.framework", "nested"), (.contents, "Frameworks", "nested"),
      (.contents, "Library/Spotlight/a.mdimporter", "nested"),
      (.contents, "Library/Other/a", "plain"), (.contents, "Resources/a.png", "plain"),
      (.contents, "Resources/de.lproj/a.strings", "optional"),
      (.contents, "Resources/Base.lproj/a.nib", "plain"),
      (.contents, "Resources/de.lproj/locversion.plist", "omit"),
      (.contents, "Resources/x/.DS_Store", "omit"), (.contents, "Resources/a.dSYM/x", "plain"),
      (.contents, "MacOS/a.dSYM", "plain"),
      (.contents, "de.lproj/a", "plain"), (.contents, "Resources/Info.plist", "plain"),
      (.flat, "Info.plist", "omit"),
      (.flat, "Frameworks/A.framework", "plain"), (.flat, "de.lproj/a", "optional"),
      (.flat, "Base.lproj/a", "plain"), (.flat, "a.png", "plain"),
      (.flat, ".DS_Store", "omit"), (.flat, "x/.DS_Store", "omit"), (.flat, "x.DS_Store", "plain"),
    ] as [(CodeBundle.Shape, String, String)])
  func standardRulesAreApples(shape: CodeBundle.Shape, path: String, expected: String) throws {
    let rules = try SealRules.standard(shape)
    var matcher = try rules.matcher()
    let rule = try #require(try matcher.rule(for: path.utf8).map { rules.rules[$0] })
    let found = rule.isOmitted ? "omit" : rule.isNested ? "nested" : rule.isOptional ? "optional" : "plain"
    #expect(found == expected)
    #expect(!rules.areWeak)
  }

  @Test func heaviestRuleWinsAndOfEqualsTheFirst() throws {
    let rules = try SealRules([SealRule("b"), SealRule("a"), SealRule("c", weight: 2)])
    var matcher = try rules.matcher()
    #expect(try matcher.rule(for: "abc".utf8).map { rules.rules[$0].pattern } == "c")
    #expect(try matcher.rule(for: "ab".utf8).map { rules.rules[$0].pattern } == "a")
    #expect(try matcher.rule(for: "x".utf8) == nil)
  }

  @Test func rulesComeBackAsTheyWereWritten() throws {
    for rules in [try SealRules.standard(.contents), try .standard(.flat), try .firstVersion(.contents)] {
      #expect(try SealRules(reading: rules.list) == rules)
    }
    for value in [
      .string("x"), .integer(1), .dictionary(PropertyList.Dictionary([("weight", .string("1"))]) ?? .init()),
    ] as [PropertyList] {
      #expect(throws: Finding.self) { try SealRule("^.*", value) }
    }
  }

  @Test func rulesThatLeaveMoreOutAreWeak() throws {
    let all = SealRule("^.*")
    #expect(try SealRules([]).areWeak)
    #expect(try SealRules([SealRule("^.*", weight: 2)]).areWeak)
    #expect(try SealRules([all, SealRule("^Resources/secret", isOmitted: true)]).areWeak)
    #expect(try !SealRules([all, SealRule("^PkgInfo$", isOmitted: true)]).areWeak)
  }
}
