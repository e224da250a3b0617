// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import TestSupport
internal import Testing

/// How much is told, and in which form.
@Suite struct MannersTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  private func object(_ line: some StringProtocol) throws -> [String: [String: Any]] {
    try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: [String: Any]])
  }

  @Test func quietLeavesOutWhatWasDone() throws {
    #expect(shell.run("-q", "init", "store").output.isEmpty)
    #expect(shell.run("user", "add", "root", "--store", "store", "--quiet").output.isEmpty)
    #expect(shell.run("check", "store", "-q").output.isEmpty)
    // Results are what was asked for, and errors are always told.
    #expect(shell.run("user", "list", "--store", "store", "-q").output.contains("root"))
    #expect(shell.run("check", "nowhere", "-q").errors.hasPrefix("insula: "))
    #expect(shell.run("-q").code == .usage)
  }

  @Test func verboseSaysWhatIsUsed() throws {
    #expect(shell.run("init", "store").code == .ok)
    let path = shell.temporary.appending("store")
    let result = shell.run("-v", "apps", "--store", "store")
    #expect(result.output == "No apps are installed.\n")
    #expect(
      result.errors.contains("insula: the store \(path) is not mounted, so it is opened by this command"))
    try shell.temporary.makeDirectory("etc")
    try shell.temporary.makeDirectory("etc/insula")
    try shell.temporary.write("", to: "etc/insula/insula.conf")
    let more = shell.run("apps", "--store", "store", "--verbose")
    #expect(more.errors.contains("going by \(shell.temporary.appending("etc/insula/insula.conf"))"))
    #expect(shell.run("apps", "--store", "store").errors.isEmpty)
    #expect(shell.run("-q", "apps", "-v").code == .usage)
  }

  /// They are not taken from another program's words.
  @Test func generalOptionsEndWhereAnotherCommandBegins() throws {
    let run = RunCommand.description
    #expect(try ParsedArguments(["-v", "a", "ls"], for: run).has("verbose"))
    #expect(try ParsedArguments(["a", "-v", "--", "ls", "-q"], for: run).has("quiet") == false)
    for words in [["a", "ls", "-v"], ["a", "ls", "--quiet"]] {
      let error = #expect(throws: UsageError.self) { try ParsedArguments(words, for: run) }
      #expect(error?.message.contains("write '--' before a command") == true)
    }
    #expect(try ParsedArguments(["a", "--args", "-v"], for: run).has("verbose") == false)
  }

  @Test(
    arguments: [
      (["apps", "--store", "nowhere", "--json"], "no-store", 4), (["apps", "--json", "--bogus"], "usage", 2),
      (["nonsense", "--json"], "usage", 2), (["status", ".", "--json"], "not-mounted", 6),
      (["acl", "--json", "nowhere"], "failed", 1), (["user", "nonsense", "--json"], "usage", 2),
      (["verify", "--json", "nowhere"], "failed", 1),
    ])
  func errorsAreJSONWhereResultsAre(words: [String], code: String, exit: Int) throws {
    let result = shell.run(words)
    let lines = result.errors.split(separator: "\n")
    let error = try #require(try lines.first.map(object)?["error"])
    #expect(lines.count == 1 && Int(result.code.rawValue) == exit)
    #expect(error["code"] as? String == code && error["exit"] as? Int == exit)
    #expect((error["message"] as? String)?.isEmpty == false)
    // Without it they are for people, and say the same.
    let told = shell.run(words.filter { $0 != "--json" })
    #expect(told.errors.hasPrefix("insula: ") && told.code == result.code)
  }

  @Test func whatIsNotForJSONStaysText() {
    // The words of another program's are not ours.
    #expect(shell.run("run", "x", "--args", "--json").errors.hasPrefix("insula: "))
    #expect(shell.run("init", "--json").errors.hasPrefix("insula: "))
    #expect(shell.run("grant", "x", "--", "--json").errors.hasPrefix("insula: "))
  }

  @Test func namesInJSONAreEscaped() throws {
    let result = shell.run("acl", "--json", "a\u{1b}[2J\n\u{202e}\"}")
    #expect(result.errors.split(separator: "\n").count == 1 && !result.errors.contains("\u{1b}"))
    let error = try object(result.errors)["error"]
    #expect((error?["message"] as? String)?.hasPrefix("a\u{1b}[2J\n\u{202e}\"}: ") == true)
  }

  /// Each exit code is known to programs by one name, and stays what it is: scripts rely on it, and so do the
  /// tests that run the program.
  @Test func codesHaveNames() {
    let codes = ExitCode.general + BundleProblem.all.map(ExitCode.found)
    #expect(Set(codes.map(\.name)).count == codes.count)
    #expect(Set(codes.map(\.rawValue)).count == codes.count)
    #expect(ExitCode.general.map(\.name) == Ending.names.map(\.name))
    #expect(ExitCode.general.map(\.rawValue) == Ending.names.map(\.status.number))
    // Nothing of a command's own looks like a signal, or like what a shell says of a program.
    #expect(codes.allSatisfy { $0.rawValue < 126 })
  }

  @Test(
    .enabled(if: (try? Program.run(["which", "script"]).status) == 0, "script(1) makes a terminal"),
    arguments: [
      ([:], true), (["NO_COLOR": "1"], false), (["NO_COLOR": ""], true), (["TERM": "dumb"], false),
    ] as [([String: String], Bool)])
  func colorsAreForTerminals(environment: [String: String], isColored: Bool) throws {
    let settings = ["TERM": "xterm", "NO_COLOR": ""].merging(environment) { $1 }
    let line = "\(Program.insula) nonsense"
    let shown = try Program.run(["script", "-qec", line, "/dev/null"], environment: settings)
    #expect(
      shown.output.hasPrefix("\u{1b}[1;31minsula:\u{1b}[0m there is no") == isColored, "\(shown.output)")
    #expect(shown.output.contains("\u{1b}") == isColored)
    let piped = try Program.run([Program.insula, "nonsense"], environment: settings)
    #expect(piped.errors.hasPrefix("insula: there is no"))
    // Before the words can be understood, too.
    let broken = "exec \(Program.insula) \"$(printf 'a\\377')\""
    let said = try Program.run(["script", "-qec", broken, "/dev/null"], environment: settings)
    #expect(said.output.contains("is not UTF-8"), "\(said.output)")
    #expect(said.output.contains("\u{1b}") == isColored, "\(said.output)")
  }
}
