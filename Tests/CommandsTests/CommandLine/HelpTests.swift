// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import LinuxIO
internal import TestSupport
internal import Testing

@Suite struct HelpTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  @Test(arguments: Insula.commands.map { $0.description.name })
  func everyVerbExplainsItself(name: String) throws {
    let words = name.split(separator: " ").map(String.init)
    let result = shell.run(words + ["--help"])
    let description = try #require(try Insula.find(words)).0.description
    #expect(result.code == .ok && result.errors.isEmpty)
    #expect(result.output.hasPrefix(description.summary))
    for argument in description.arguments { #expect(result.output.contains(argument.help)) }
    for option in description.options { #expect(result.output.contains(option.help) == !option.isHidden) }
    #expect(shell.run("help", name).output.contains("Usage: insula \(name)"))
  }

  @Test(arguments: Insula.commands.map { $0.description })
  func descriptionsAreWholeSentences(description: CommandDescription) {
    #expect(description.summary.hasSuffix("."))
    #expect(description.summary.count < 110)
    #expect(Set(description.options.map(\.name)).count == description.options.count)
    let shorts = description.options.compactMap(\.short)
    #expect(Set(shorts).count == shorts.count)
    // What is required comes first, unless it is told from the rest.
    let required = description.arguments.filter { !$0.followsDashes }.map(\.isRequired)
    #expect(required == required.sorted { $0 && !$1 })
  }

  @Test func helpLinesFitATerminal() {
    for description in Insula.commands.map({ $0.description }) {
      for line in HelpText.text(for: description).split(separator: "\n") {
        #expect(line.count <= 120, "\(description.name): \(line)")
      }
    }
  }

  @Test func withoutAVerbTheHelpIsPrintedAndNothingIsDone() throws {
    #expect(shell.run().code == .usage)
    #expect(shell.run("help").code == .ok)
    #expect(shell.run().output == shell.run("help").output)
    let codes = shell.run("help", "exit-codes").output.split { $0 == " " || $0 == "\n" }.joined(
      separator: " ")
    for row in ExitCode.table {
      // The README's marks for commands are for the README.
      let meaning = row.meaning.replacing(each: "`", by: "'")
      #expect(codes.contains("\(row.number) \(meaning)"))
    }
    #expect(shell.run("version").output == "insula \(Insula.version)\n")
    #expect(shell.run("help", "nonsense").code == .usage)
    #expect(shell.run("help", "user", "add").output == shell.run("user", "add", "--help").output)
    #expect(shell.run("help", "user", "nonsense").code == .usage)
  }

  @Test func overviewFitsAScreenAndNamesEveryCommand() {
    let text = HelpText.overview()
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count <= 24 && lines.allSatisfy { $0.count < 80 }, "\(text)")
    let words = text.split { " \n,|.':".contains($0) }.map(String.init)
    for description in Insula.commands.map({ $0.description }) {
      #expect(description.name.split(separator: " ").allSatisfy { words.contains(String($0)) })
    }
    for topic in HelpTopic.all { #expect(words.contains(topic.name)) }
  }

  @Test(arguments: HelpTopic.all.map(\.name))
  func everyTopicIsExplained(name: String) {
    let result = shell.run("help", name)
    #expect(result.code == .ok && result.output.split(separator: "\n").count > 4, "\(result.output)")
    // A command would hide it.
    #expect(!Insula.commands.contains { $0.description.name.prefix { $0 != " " } == name })
  }

  @Test func readmeHoldsTheTables() throws {
    let readme = try String(contentsOfFile: Repository.root + "/README.md", encoding: .utf8)
    #expect(readme.contains(HelpText.markdownTable()), "paste this:\n\(HelpText.markdownTable())")
    #expect(readme.contains(HelpText.markdownExitCodes()), "paste this:\n\(HelpText.markdownExitCodes())")
  }

  @Test func changelogKnowsTheVersion() throws {
    let log = try String(contentsOfFile: Repository.root + "/CHANGELOG.md", encoding: .utf8)
    #expect(log.contains("## \(Insula.version)"))
  }

  @Test func shellWithoutCompletionsIsNamed() {
    let result = shell.run("completions", "csh")
    #expect(result.code == .usage && result.errors.contains("'csh'"))
  }
}
