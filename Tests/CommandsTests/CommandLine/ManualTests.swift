// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import TestSupport
internal import Testing

@Suite struct ManualTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  @Test func everyCommandHasAPage() throws {
    let listed = shell.run("help", "--man")
    #expect(listed.code == .ok)
    let names = listed.output.split(separator: "\n").map(String.init)
    #expect(Set(names).count == names.count)
    for description in Insula.commands.map({ $0.description }) {
      #expect(names.contains(ManualPages.name(of: description) + ".1"))
      // A table or a list of the program's knows it because it is in exactly one group.
      let groups = Insula.groups.filter { $0.commands.contains { $0.description.name == description.name } }
      #expect(groups.count == 1)
    }
    for name in ["insula.1", "insula.7", "mount.insula.8"] { #expect(names.contains(name)) }
  }

  /// A file with a command that nobody has put into a group would be in no help and no manual.
  @Test func everyCommandIsInAGroup() throws {
    let found = try Program.run([
      "grep", "-rlE", "^struct [A-Za-z]+: Command \\{", Repository.root + "/Sources/Commands",
    ])
    #expect(found.output.split(separator: "\n").count == Insula.commands.count)
  }

  @Test func pagesAreFoundByEveryName() {
    let page = shell.run("help", "--man", "insula-user-add.1")
    #expect(page.code == .ok && page.output.hasPrefix(".TH \"INSULA\\-USER\\-ADD\" 1 "))
    #expect(shell.run("help", "--man", "insula-user-add").output == page.output)
    #expect(shell.run("help", "--man", "user", "add").output == page.output)
    #expect(shell.run("help", "--man", "nonsense").code == .usage)
  }

  @Test func pagesSayWhatHelpSays() {
    let page = shell.run("help", "--man", "mount.insula.8").output
    for option in MountOptionHelp.all { #expect(page.contains(Roff.literal(option.spelling))) }
    #expect(!shell.run("help", "--man", "mount").output.contains("background"))
  }

  /// What `-o` takes is what the manual says, with a value where it says so, or two.
  @Test func mountOptionsOfTheManualAreUnderstood() throws {
    for option in MountOptionHelp.all {
      let mayHaveValue = option.spelling.hasSuffix("]")
      let words = option.spelling.split { "[=]".contains($0) }
      let value = words.last?.contains(":") == true ? "1G:2G" : words.last == "FILE" ? "/x" : "1"
      if words.count > 1 { _ = try MountOptions(["\(words[0])=\(value)"]) }
      if words.count == 1 || mayHaveValue { _ = try MountOptions(["\(words[0])"]) }
    }
  }

  @Test(
    arguments: [
      ("a\\b", "a\\eb"), ("'x' \"y\"", "\\(aqx\\(aq \\(dqy\\(dq"), ("~/a^b`", "\\(ti/a\\(hab\\(ga"),
      ("read-only", "read-only"), ("[-R] or --json", "[\\-R] or \\-\\-json"), ("/a-b", "/a\\-b"),
      ("'new-app a-b' re-read", "\\(aqnew\\-app a\\-b\\(aq re-read"), ("don't re-read", "don\\(aqt re-read"),
    ])
  func proseIsEscaped(text: String, expected: String) { #expect(Roff.prose(text) == expected) }

  @Test func linesThatBeginLikeRequestsAreText() {
    var roff = Roff(name: "test", section: 1, date: "2026-01-01", version: "1")
    roff.heading("ONE")
    roff.paragraph(".hidden\n'quoted")
    roff.lines([".SH no", "'br", "", "\\fBno"])
    let body = roff.source.split(separator: "\n").dropFirst(2)
    #expect(
      body.elementsEqual([
        "\\&.hidden \\(aqquoted", ".PP", ".RS 4", ".nf", "\\&.SH no", "\\(aqbr", ".sp", "\\efBno", ".fi",
        ".RE",
      ]), "\(roff.source)")
  }

  /// All pages as they are installed, that of the semantics too, are read without a warning.
  @Test func readersOfTheManualFindNothingWrong() throws {
    let script = Repository.root + "/mount-scripts/man.sh"
    let written = try Program.run([script, shell.temporary.appending("man")], environment: environment)
    #expect(written.status == 0, "\(written.errors)")
    let pages = try Program.run(["find", shell.temporary.appending("man"), "-type", "f"]).output
    #expect(pages.split(separator: "\n").count == ManualPages.all.count + 1)
    // Those that are not installed are not asked.
    guard try ["groff", "mandoc"].contains(where: { try Program.run(["which", $0]).status == 0 }) else {
      return
    }
    let check = try Program.run(
      [script, "--check", shell.temporary.appending("man")], environment: environment)
    #expect(check.status == 0, "\(check.errors)")
  }

  private var environment: [String: String] {
    ["INSULA": Program.insula, "PATH": "/usr/local/bin:/usr/bin:/bin"]
  }
}
