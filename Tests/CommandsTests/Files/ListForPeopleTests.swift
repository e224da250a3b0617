// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import CLinux
internal import Foundation
internal import Glibc
internal import TestSupport
internal import Testing

/// `insula ls --finder` and `insula name`, on files whose flags are in an attribute of another name.
@Suite struct ListForPeopleTests {
  private let shell: Shell

  init() throws {
    shell = try Shell()
    for name in ["Documents", "Akte.rtfd", "A.localized", "A.localized/.localized", "hidden", "hidden/x"] {
      try shell.temporary.makeDirectory(name)
    }
    for name in [
      "Documents/.localized", ".dot", "report.pdf", "invisible", "Akte.rtfd/TXT.rtf", "hidden/inner",
    ] {
      try shell.temporary.write("", to: name)
    }
    try shell.temporary.write("A = Zwei;", to: "A.localized/.localized/de.strings")
    #expect(shell.run(["flags", "+hidden", "hidden"]).code == .ok)
    var info = [UInt8](repeating: 0, count: 32)
    info[8] = 0x40
    #expect(setxattr(shell.temporary.appending("invisible"), "user.com.apple.FinderInfo", info, 32, 0) == 0)
  }

  private func run(_ words: String...) -> Shell.Result {
    shell.run(words, variables: ["LANG": "de_DE.UTF-8"])
  }

  @Test func hiddenOnesAreGoneAndPackagesAreOne() {
    #expect(run("ls", "--finder").output == "Zwei\nAkte\nDokumente\nreport\n")
    #expect(
      run("ls", "--finder", "-R").output
        == ".:\nZwei\nAkte\nDokumente\nreport\n\n./A.localized:\n\n./Documents:\n")
    #expect(run("ls", "--finder", "Akte.rtfd", "Documents").output == "Akte\n\nDocuments:\n")
    #expect(run("ls", "--finder", "-A").output.split(separator: "\n").contains("hidden"))
    let json = run("ls", "--finder", "--json").output
    let listed = (try? JSONSerialization.jsonObject(with: Data(json.utf8))) as? [[String: Any]]
    #expect(listed?.map { $0["name"] as? String } == ["Zwei", "Akte", "Dokumente", "report"])
    #expect(listed?.map { $0["kind"] as? String } == ["directory", "package", "directory", "file"])
    #expect(
      listed?.map { $0["file"] as? String } == [
        "./A.localized", "./Akte.rtfd", "./Documents", "./report.pdf",
      ])
  }

  @Test func plainListingShowsAllAsItIsOnDisk() {
    #expect(run("ls").output == "A.localized\nAkte.rtfd\nDocuments\nhidden\ninvisible\nreport.pdf\n")
    #expect(!run("ls", "--json").output.split(separator: "\n").contains { $0.hasPrefix("    \"name\"") })
  }

  @Test func namesAreThoseOfTheEnvironmentOrTheOption() {
    #expect(run("name", "Documents").output == "Dokumente\n")
    #expect(run("name", "Documents", "--language", "ja").output == "書類\n")
    #expect(shell.run(["name", "Documents"]).output == "Documents\n", "no language")
    #expect(run("name", "A.localized/", "report.pdf").output == "A.localized/: Zwei\nreport.pdf: report\n")
    let json = run("name", "--json", "hidden", "Documents").output
    let listed = (try? JSONSerialization.jsonObject(with: Data(json.utf8))) as? [[String: Any]]
    #expect(listed?.map { $0["name"] as? String } == ["hidden", "Dokumente"])
    #expect(listed?.map { $0["hidden"] as? Bool } == [true, false])
  }

  @Test func extensionsAreHiddenAndShown() throws {
    #expect(run("name", "--show-extension", "report.pdf").code == .ok)
    #expect(run("name", "report.pdf").output == "report.pdf\n")
    #expect(run("name", "--hide-extension", "report.pdf").code == .ok)
    #expect(run("name", "report.pdf").output == "report\n")
    var value = [UInt8](repeating: 1, count: 64)
    let path = shell.temporary.appending("report.pdf")
    #expect(getxattr(path, "user.com.apple.FinderInfo", &value, 64) == 32 && value[9] == 0x10)
    #expect(getxattr(path, "user.org.insula.extension", &value, 64) == -1)
    #expect(run("name", "--show-extension", "report.pdf").code == .ok)
    #expect(getxattr(path, "user.com.apple.FinderInfo", &value, 64) == -1, "what says nothing is none")
    // What else the attribute says stays.
    value = [UInt8](repeating: 7, count: 32)
    #expect(setxattr(path, "user.com.apple.FinderInfo", value, 32, 0) == 0)
    #expect(run("name", "--hide-extension", "report.pdf").code == .ok)
    value[9] |= 0x10
    var now = [UInt8](repeating: 0, count: 32)
    #expect(getxattr(path, "user.com.apple.FinderInfo", &now, 32) == 32 && now == value)
  }
}
