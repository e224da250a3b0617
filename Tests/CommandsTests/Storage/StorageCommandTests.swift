// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import TestSupport
internal import Testing

/// `insula storage` on a store that nobody serves, and where its page goes.
@Suite struct StorageCommandTests {
  private let shell: Shell
  private var path: String { shell.temporary.appending("store") }

  init() throws {
    shell = try Shell()
    #expect(shell.run("init", shell.temporary.appending("store")).code == .ok)
  }

  private func storage(_ words: String..., as uid: UInt32 = getuid()) -> Shell.Result {
    shell.run(["storage", "--store", path] + words, as: uid)
  }

  @Test func storeWithoutAppsIsShown() throws {
    let text = storage()
    #expect(text.code == .ok && text.output.contains("No app uses any space."), "\(text)")
    let json = storage("--json")
    let report = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
    #expect((report?["items"] as? [Any])?.isEmpty == true && report?["available"] != nil)
    #expect(storage("--history").output == "Nothing was purged.\n")
    #expect(storage("--history", "--json").output.filter { !$0.isNewline } == "[]")
    #expect(storage("com.example.none").code == .failed)
    #expect(storage("--html", "x", "--json").code == .usage)
    #expect(storage("--html", "").code == .usage)
  }

  @Test func pageGoesToAFileOfOnesOwn() throws {
    let page = shell.temporary.appending("page.html")
    let written = storage("--html", "page.html")
    #expect(written.code == .ok && written.output == "Wrote page.html.\n", "\(written)")
    let first = try String(contentsOfFile: page, encoding: .utf8)
    #expect(first.hasPrefix("<!DOCTYPE html>\n") && first.hasSuffix("</html>\n"))
    let mode = try FileManager.default.attributesOfItem(atPath: page)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    // It is replaced, not written into: another name of what was there keeps that.
    try "before".write(toFile: page, atomically: false, encoding: .utf8)
    try #require(link(page, page + ".other") == 0)
    #expect(storage("--html", page).code == .ok)
    #expect(try String(contentsOfFile: page + ".other", encoding: .utf8) == "before")
    #expect(storage("--html", "-").output == (try String(contentsOfFile: page, encoding: .utf8)))
    #expect(storage("--html", "missing/page.html").code == .failed)
  }

  @Test(arguments: ["symlink", "dangling", "fifo", "directory"])
  func whatIsNoFileStaysAsItIs(kind: String) throws {
    let page = shell.temporary.appending("page.html")
    let target = try shell.temporary.write("mine", to: "target")
    let made =
      switch kind {
      case "symlink": symlink(target, page)
      case "dangling": symlink(target + ".none", page)
      case "fifo": mkfifo(page, 0o600)
      default: mkdir(page, 0o700)
      }
    try #require(made == 0)
    let result = storage("--html", page)
    #expect(result.code == .failed && result.errors.contains("is no file; nothing was changed"), "\(result)")
    #expect(try String(contentsOfFile: target, encoding: .utf8) == "mine")
    #expect(access(target + ".none", F_OK) != 0)
    #expect(try FileManager.default.contentsOfDirectory(atPath: shell.temporary.path).count == 3)
  }

  @Test(.enabled(if: Program.isRoot, "only root can make what belongs to others"))
  func fileOfSomebodyElseStaysAsItIs() throws {
    let page = try shell.temporary.write("theirs", to: "page.html")
    try #require(chown(page, 12345, 12345) == 0)
    let result = storage("--html", page)
    #expect(result.code == .failed && result.errors.contains("belongs to somebody else"), "\(result)")
    #expect(try String(contentsOfFile: page, encoding: .utf8) == "theirs")
  }
}
