// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import TestSupport
internal import Testing

/// `insula flags`, on files whose flags are in an attribute of another name.
@Suite struct FlagsCommandTests {
  private let shell: Shell

  init() throws {
    shell = try Shell()
    try shell.temporary.write("", to: "file")
    try shell.temporary.makeDirectory("dir")
    try shell.temporary.write("", to: "dir/inner")
  }

  private func flags(_ words: String...) -> Shell.Result { shell.run(["flags"] + words) }

  @Test func whatIsSetIsShown() {
    #expect(flags("file").output == "-\n")
    #expect(flags("hidden,uchg", "file", "dir").code == .ok)
    #expect(flags("file").output == "uchg,hidden\n")
    #expect(flags("nouchg", "file").code == .ok)
    #expect(flags("file", "dir").output == "file: hidden\ndir: uchg,hidden\n")
  }

  @Test(
    arguments: [
      (["uchg", "file"], "uchg"), (["+uchg", "file"], "uchg"), (["file", "+uchg"], "uchg"),
      (["-hidden", "file"], "-"), (["file", "-hidden"], "-"), (["nohidden", "file"], "-"),
      (["file", "-hidden,arch"], "-"), (["uchg,nohidden", "file"], "uchg"), (["dump", "file"], "hidden"),
      (["-R", "file", "-hidden"], "-"), (["--", "-hidden", "file"], "-"),
    ])
  func changeStandsInFrontOrHasASign(words: [String], after: String) {
    #expect(flags("hidden", "file").code == .ok)
    let result = shell.run(["flags"] + words)
    #expect(result.code == .ok && result.output.isEmpty && result.errors.isEmpty, "\(result.errors)")
    let shown = flags("file").output
    #expect(shown == (words[0] == "uchg" || words.contains("+uchg") ? "uchg,hidden\n" : after + "\n"))
  }

  @Test func fileMayHaveTheNameOfAFlag() throws {
    try shell.temporary.write("", to: "uchg")
    // One word is a file, for without one there is nothing to do.
    #expect(flags("uchg").output == "-\n")
    #expect(flags("hidden", "uchg").code == .ok)
    #expect(flags("./uchg", "file").output == "./uchg: hidden\nfile: -\n")
  }

  /// Nor is one the option of a change.
  @Test(arguments: ["-R", "--no-follow"]) func theNameOfAFileIsNoOption(name: String) throws {
    try shell.temporary.write("", to: name)
    for words in [["hidden", name, "file"], ["hidden", "file", name], ["file", name, "+hidden"]] {
      let result = shell.run(["flags"] + words)
      #expect(result.code == .usage && result.errors.contains("'\(name)' is an option, and"), "\(result)")
    }
    #expect(flags("file").output == "-\n")
    #expect(flags("hidden", "--", "file", name).code == .ok)
    #expect(flags("file", "./\(name)").output == "file: hidden\n./\(name): hidden\n")
  }

  /// A shell puts the names of files in the place of '*': none of them is an order.
  @Test(arguments: ["-hidden", "+hidden", "arch", "hidden,-uchg"])
  func theNameOfAFileIsNoChange(name: String) throws {
    #expect(flags("uchg", "file").code == .ok)
    try shell.temporary.write("", to: name)
    let last = name.hasPrefix("-") ? ["file", name] : [name, "dir"]
    for words in [[name, "file"], ["-R", name, "file"], last] {
      let result = shell.run(["flags"] + words)
      #expect(result.code == .usage && result.errors.contains("'\(name)' is a change, and"), "\(result)")
    }
    #expect(flags("file", "dir").output == "file: uchg\ndir: -\n")
    #expect(flags("./\(name)", "file").output == "./\(name): -\nfile: uchg\n")
  }

  @Test(
    arguments: [
      ([], "FILE is missing"), (["+uchg"], "FILE is missing"),
      (["uchgg", "file"], "there is no flag 'uchgg'"),
      (["+uchg", "-hidden", "file"], "more than one change"),
      (["-uchgg", "file"], "unknown option '-uchgg'"),
      (["uchg", "--json", "file"], "'--json' can't be combined"),
    ])
  func whatMakesNoSense(words: [String], message: String) {
    let result = shell.run(["flags"] + words)
    #expect(result.code == .usage && result.errors.contains(message), "\(result.errors)")
    #expect(flags("file").output == "-\n")
  }

  @Test func wholeTrees() throws {
    #expect(symlink("../file", shell.temporary.appending("dir/link")) == 0)
    #expect(flags("-R", "uchg", "dir").code == .ok)
    #expect(flags("-R", "dir").output == "dir: uchg\ndir/inner: uchg\n")
    #expect(flags("file").output == "-\n")
    #expect(flags("-R", "-uchg", "dir").code == .ok)
    #expect(flags("-R", "dir").output.isEmpty)
  }

  @Test func otherFilesAreDoneAfterOneThatFails() {
    let result = flags("+uchg", "missing", "/proc/version", "file")
    #expect(result.code == .failed)
    #expect(result.errors.contains("insula: missing: No such file or directory\n"))
    #expect(result.errors.contains("insula: /proc/version: is not on an insula mount"))
    #expect(flags("file").output == "uchg\n")
  }

  @Test func programsGetJSON() throws {
    #expect(flags("uchg,hidden", "file").code == .ok)
    let result = flags("--json", "file", "dir")
    let found = try #require(
      try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
    #expect(found.map { $0["file"] as? String } == ["file", "dir"])
    #expect(found.map { $0["flags"] as? [String] } == [["uchg", "hidden"], []])
  }
}
