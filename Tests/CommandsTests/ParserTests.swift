// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Testing

@Suite struct ParserTests {
  private let description = CommandDescription(
    name: "verb", summary: "",
    arguments: [.init(name: "ONE", help: "", isRequired: true), .init(name: "TWO", help: "")],
    options: [
      .init(name: "flag", short: "f", help: ""), .init(name: "o", short: "o", value: "OPTIONS", help: ""),
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
