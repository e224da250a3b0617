// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
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
    // What is required comes first.
    let required = description.arguments.map(\.isRequired)
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
    for row in ExitCode.table { #expect(codes.contains("\(row.number) \(row.meaning)")) }
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

  @Test(arguments: ["bash", "zsh", "fish"])
  func completionsAreAProgramOfTheirShell(name: String) throws {
    let result = shell.run("completion", name)
    #expect(result.code == .ok)
    for verb in ["mount", "unmount", "doctor", "remove", "admin-group", "delete-home"] {
      #expect(result.output.contains(verb))
    }
    #expect(!result.output.contains("background-child"))
    let script = try shell.temporary.write(result.output, to: "script")
    // Those that are not installed are not asked.
    guard try Program.run(["which", name]).status == 0 else { return }
    let check = try Program.run([name, "-n", script])
    #expect(check.status == 0, "\(check.errors)")
  }

  @Test(
    arguments: [
      (
        "insula ",
        Set(Insula.commands.map { String($0.description.name.prefix { $0 != " " }) }).sorted()
      ),
      ("insula un", ["uninstall", "unmount"]), ("insula acl +", ["+a", "+a#", "+ai", "+ai#"]),
      ("insula user ", ["add", "list", "remove"]), ("insula trust ", ["add", "list", "remove"]),
      ("insula identity ", ["export", "import", "list", "new"]), ("insula sign --f", ["--force"]),
      ("insula user remove --", ["--delete-home", "--help", "--store"]),
      ("insula completions ", ["bash", "fish", "zsh"]), ("insula help exi", ["exit-codes"]),
      ("insula help m", ["mount", "mount-options"]), ("insula status --j", ["--json"]),
    ])
  func bashCompletes(line: String, expected: [String]) throws {
    try shell.temporary.write(shell.run("completions", "bash").output, to: "script")
    let program = """
      source '\(shell.temporary.appending("script"))'
      line='\(line)'
      read -ra COMP_WORDS <<< "$line"
      [[ $line == *' ' ]] && COMP_WORDS+=('')
      COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
      _insula
      printf '%s\\n' "${COMPREPLY[@]}" | sort
      """
    let result = try Program.run(["bash", "-c", program])
    #expect(result.output.split(separator: "\n").map(String.init) == expected, "\(result.errors)")
  }

  @Test func shellWithoutCompletionsIsNamed() {
    let result = shell.run("completions", "csh")
    #expect(result.code == .usage && result.errors.contains("'csh'"))
  }

  /// All that help says of an option, quotes and colons included, is what completion says.
  @Test func zshGetsTheWholeHelp() throws {
    guard try Program.run(["which", "zsh"]).status == 0 else { return }
    let script = try shell.temporary.write(shell.run("completions", "zsh").output, to: "_insula")
    let stubs = "compdef() {}; _arguments() { print -rl -- \"$@\" }; _describe() { print -rl -- $verbs }; "
    func shown(_ words: [String]) throws -> [String] {
      let call = "words=(\(words.joined(separator: " ")) ''); CURRENT=\(words.count + 1); _insula"
      let result = try Program.run(["zsh", "-fc", "\(stubs) source \(script); \(call)"])
      return result.output.split(separator: "\n").map { line in
        String(line).replacing(/\\(.)/) { match in String(match.output.1) }
      }
    }
    #expect(try shown(["insula"]).contains("init:\(InitCommand.description.summary)"))
    for description in Insula.commands.map({ $0.description }) {
      let lines = try shown(["insula"] + description.name.split(separator: " ").map(String.init))
      for option in description.options where !option.isHidden {
        let dashes = option.name.count > 1 ? "--" : "-"
        let start = "\(dashes)\(option.name)[\(option.help)]"
        #expect(lines.contains { $0.hasPrefix(start) }, "\(description.name): \(start)")
      }
    }
  }

  @Test func fishGetsTheWholeHelp() throws {
    guard try Program.run(["which", "fish"]).status == 0 else { return }
    let script = try shell.temporary.write(shell.run("completions", "fish").output, to: "insula.fish")
    let environment = ["HOME": shell.temporary.path, "COLUMNS": "500"]
    func shown(_ line: String) throws -> String {
      let words = "set -g COLUMNS 500; source \(script); complete -C'\(line)'"
      return try Program.run(["fish", "--no-config", "-c", words], environment: environment).output
    }
    let summaries = try shown("insula ")
    for name in ["acl", "flags", "init", "export"] {
      let summary = try #require(try Insula.find([name])).0.description.summary
      #expect(summaries.contains("\(name)\t\(summary)"), "\(summaries)")
    }
    let options = try shown("insula init --")
    for option in InitCommand.description.options where !option.isHidden {
      #expect(options.contains("--\(option.name)\t\(option.help)"), "\(options)")
    }
  }
}
