// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Testing

@Suite struct ParserTests {
  private let description = CommandDescription(
    name: "verb", summary: "",
    arguments: [.init(name: "ONE", help: "", isRequired: true), .init(name: "TWO", help: "")],
    options: [
      .init(name: "flag", short: "f", help: ""),
      .init(name: "o", short: "o", value: "OPTIONS", help: "", mayRepeat: true),
      .init(name: "group", value: "NAME", help: ""), .init(name: "g", short: "g", help: ""),
    ])

  private func parse(_ words: String...) throws(UsageError) -> ParsedArguments {
    try ParsedArguments(words, for: description)
  }

  @Test func placesAndNamesMayBeMixed() throws {
    let parsed = try parse("--flag", "a", "-o", "x,y", "b", "--group=g=h")
    #expect(parsed.positional == ["a", "b"])
    #expect(parsed.has("flag"))
    #expect(parsed.value("o") == "x,y")
    #expect(parsed.value("group") == "g=h")
    #expect(parsed.argument(1) == "b" && parsed.argument(2) == nil)
  }

  @Test func shortOptionsMayBeWrittenTogether() throws {
    let parsed = try parse("-fgoro", "a", "-o", "rw")
    #expect(parsed.has("flag") && parsed.has("g"))
    #expect(parsed.allValues("o") == ["ro", "rw"])
    #expect(parsed.value("o") == "rw")
  }

  @Test func afterTwoDashesEverythingIsAPlace() throws {
    #expect(try parse("--", "--flag", "-f").positional == ["--flag", "-f"])
    #expect(try parse("-").positional == ["-"])
  }

  @Test(
    arguments: [
      [], ["a", "b", "c"], ["a", "--no"], ["a", "-x"], ["a", "-fx"], ["a", "--flag=1"], ["a", "--group"],
      ["a", "-o"], [""], ["a", "---"], ["a", "--="], ["a", "-ö"],
    ])
  func whatMakesNoSense(words: [String]) {
    let error = #expect(throws: UsageError.self) { try ParsedArguments(words, for: description) }
    #expect(error?.message.hasSuffix("see 'insula verb --help'") == true)
  }

  @Test(arguments: [["--help"], ["-h"], ["a", "b", "c", "--help"]])
  func helpIsGivenWhateverElseThereIs(words: [String]) throws {
    #expect(try ParsedArguments(words, for: description).wantsHelp)
  }

  /// As Mac's chmod has them: known as words, and what follows is theirs whatever it begins with.
  private let acting = CommandDescription(
    name: "verb", summary: "",
    arguments: [.init(name: "FILE", help: "", isRequired: true, isRepeated: true)],
    options: [.init(name: "R", short: "R", help: ""), .init(name: "h", short: "h", help: "")],
    actions: [
      .init(word: "+a", values: ["ENTRY"], help: ""), .init(word: "-a#", values: ["N"], help: ""),
      .init(word: "=a#", values: ["N", "ENTRY"], help: ""), .init(word: "-N", help: ""),
    ], isArgument: { $0 == "-word" })

  @Test(
    arguments: [
      (["+a", "-x", "f"], "+a", ["-x"]), (["f", "-a#", "--help"], "-a#", ["--help"]),
      (["=a#", "1", "+a", "f"], "=a#", ["1", "+a"]), (["-R", "-N", "f"], "-N", []), (["-RN", "f"], "-N", []),
      (["-NR", "f"], "-N", []), (["f", "-N"], "-N", []),
    ])
  func actionsAreWholeWords(words: [String], word: String, values: [String]) throws {
    let parsed = try ParsedArguments(words, for: acting)
    let written = words.first { $0 == word || word == "-N" && $0.hasPrefix("-") && $0.contains("N") }
    #expect(parsed.action == .init(word: word, values: values, written: written ?? ""))
    #expect(parsed.positional == ["f"])
    #expect(parsed.has("R") == words.contains { $0.hasPrefix("-R") || $0.hasSuffix("R") })
  }

  @Test(arguments: [
    ["+a"], ["=a#", "1"], ["-N", "+a", "x", "f"], ["-NN", "f"], ["-Ra", "f"], ["-N"], ["-a", "f"],
  ])
  func actionsThatMakeNoSense(words: [String]) {
    #expect(throws: UsageError.self) { try ParsedArguments(words, for: acting) }
  }

  @Test func lastArgumentMayBeRepeated() throws {
    let parsed = try ParsedArguments(["a", "-word", "--", "+a", "-N"], for: acting)
    #expect(parsed.positional == ["a", "-word", "+a", "-N"] && parsed.action == nil)
  }

  @Test func letterOfHelpMayMeanSomethingElse() throws {
    let parsed = try ParsedArguments(["-h", "f"], for: acting)
    #expect(parsed.has("h") && !parsed.wantsHelp)
    #expect(try ParsedArguments(["--help"], for: acting).wantsHelp)
    #expect(HelpText.text(for: acting).contains(/\n  --help +print this/))
  }

  @Test func manyLettersAreWrittenAsOneWord() {
    let letters = "abcde".map { CommandDescription.Option(name: "\($0)", short: $0, help: "") }
    let long = CommandDescription.Option(name: "long", help: "")
    #expect(
      CommandDescription(name: "verb", summary: "", options: letters + [long]).synopsis
        == "verb [-abcde] [--long]")
    #expect(
      CommandDescription(name: "verb", summary: "", options: Array(letters.prefix(2))).synopsis
        == "verb [-a] [-b]")
    #expect(acting.synopsis == "verb FILE... [-R] [-h]")
  }

  @Test(arguments: Insula.commands.map { $0.description.name })
  func everyVerbIsFoundByItsName(name: String) throws {
    let words = name.split(separator: " ").map(String.init) + ["rest"]
    let (command, rest) = try #require(try Insula.find(words))
    #expect(command.description.name == name)
    #expect(Array(rest) == ["rest"])
  }

  @Test(
    arguments: [
      ("umount", "unmount"), ("completion", "completions"), ("--help", "help"), ("--version", "version"),
      // As mount.fuse3 calls it.
      ("/var/lib/insula", "mount"), ("./store", "mount"),
    ])
  func otherWordsForVerbs(word: String, name: String) throws {
    #expect(try Insula.find([word])?.0.description.name == name)
  }

  @Test(arguments: [["nonsense"], ["user"], ["user", "nonsense"], ["use"], [""]])
  func noVerb(words: [String]) {
    #expect(throws: UsageError.self) { try Insula.find(words) }
  }
}
