// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// `insula acl`, on files whose lists are in attributes of another name.
@Suite struct ACLCommandTests {
  private let shell: Shell

  init() throws {
    shell = try Shell()
    try shell.temporary.write("", to: "file")
    try shell.temporary.makeDirectory("dir")
  }

  private func acl(_ words: String...) -> Shell.Result { shell.run(["acl"] + words) }
  private func lines(_ name: String) -> [String] {
    shell.run("acl", name).output.split(separator: "\n").map(String.init)
  }

  @Test func whatIsSetIsShown() {
    #expect(acl("file").output == "file: no ACL\n")
    #expect(acl("+a", "user:anna allow read,write", "file", "dir").code == .ok)
    #expect(acl("file").output == " 0: user:anna allow read,write\n")
    #expect(acl("dir").output == " 0: user:anna allow list,add_file\n")
    #expect(
      acl("file", "dir").output
        == "file:\n 0: user:anna allow read,write\ndir:\n 0: user:anna allow list,add_file\n")
  }

  /// A shell puts the names of files in the place of '*': none of them is an order.
  @Test(
    arguments: [
      ["+a", "everyone allow read"], ["+a#", "0", "everyone allow read"], ["-N"], ["-I"], ["-RN"], ["-E"],
    ])
  func theNameOfAFileIsNoAction(words: [String]) throws {
    #expect(acl("+a", "anna allow read", "file").code == .ok)
    for name in words { try shell.temporary.write("", to: name) }
    let result = shell.run(["acl"] + words + ["file"])
    #expect(result.code == .usage && result.errors.contains("'\(words[0])' is a change, and"), "\(result)")
    #expect(acl("file").output == " 0: user:anna allow read\n")
    #expect(acl("./\(words[0])").output == "./\(words[0]): no ACL\n")
  }

  /// Nor an option; after '--' it is a file.
  @Test func theNameOfAFileIsNoOption() throws {
    try shell.temporary.makeDirectory("dir/below")
    try shell.temporary.write("", to: "-R")
    for words in [["+a", "anna allow read", "-R", "dir"], ["+a", "anna allow read", "dir", "-R"]] {
      let result = shell.run(["acl"] + words)
      #expect(result.code == .usage && result.errors.contains("'-R' is an option, and"), "\(result)")
    }
    #expect(acl("dir/below").output == "dir/below: no ACL\n")
    #expect(acl("+a", "anna allow read", "--", "-R", "file").code == .ok)
    #expect(acl("file", "./-R").output.contains("./-R:\n 0: user:anna allow read"))
    #expect(acl("-R", "dir").code == .ok)
  }

  @Test func everyActionIsThere() {
    for (words, expected) in [
      (["+a", "anna allow read"], ["user:anna allow read"]),
      (["+a", "everyone deny delete"], ["group:everyone deny delete", "user:anna allow read"]),
      (
        ["+ai", "staff allow read"],
        ["group:everyone deny delete", "user:anna allow read", "group:staff inherited allow read"]
      ),
      (["-I"], ["group:everyone deny delete", "user:anna allow read"]),
      (
        ["+ai#", "0", "bert allow execute"],
        ["user:bert inherited allow execute", "group:everyone deny delete", "user:anna allow read"]
      ),
      (["-i"], ["user:bert allow execute", "group:everyone deny delete", "user:anna allow read"]),
      (["-a#", "1"], ["user:bert allow execute", "user:anna allow read"]),
      (["=a#", "1", "anna allow chown"], ["user:bert allow execute", "user:anna allow chown"]),
      (
        ["+a#", "2", "anna deny read"],
        ["user:bert allow execute", "user:anna allow chown", "user:anna deny read"]
      ),
      (["-a", "anna allow chown"], ["user:bert allow execute", "user:anna deny read"]),
    ] {
      let result = shell.run(["acl"] + words + ["file"])
      #expect(result.code == .ok && result.output.isEmpty && result.errors.isEmpty, "\(words)")
      #expect(lines("file") == expected.enumerated().map { " \($0): \($1)" }, "\(words)")
    }
    #expect(acl("-N", "file").code == .ok)
    #expect(acl("file").output == "file: no ACL\n")
    #expect(acl("-N", "file").code == .ok)
  }

  @Test func listIsReadFromStandardInput() throws {
    let text = "user:anna allow read\n 1: group:everyone inherited deny delete\n"
    #expect(shell.run(["acl", "-E", "file"], input: text).code == .ok)
    #expect(lines("file") == [" 0: user:anna allow read", " 1: group:everyone inherited deny delete"])
    // What is shown is taken.
    #expect(shell.run(["acl", "-E", "dir"], input: acl("file").output).code == .ok)
    #expect(lines("dir") == [" 0: user:anna allow list", " 1: group:everyone inherited deny delete"])
    for wrong in ["", "\n", "file: no ACL\n", String(repeating: "anna allow read\n", count: 129)] {
      #expect(shell.run(["acl", "-E", "file"], input: wrong).code == .usage)
    }
    #expect(lines("file").count == 2)
  }

  @Test func withoutItsLastEntryTheACLIsEmpty() {
    #expect(acl("+a", "anna allow read", "file").code == .ok)
    #expect(acl("-a#", "0", "file").code == .ok)
    #expect(acl("file").output == "file: an empty ACL\n")
  }

  @Test(
    arguments: [
      (["+a", "otto allow read"], "there is no user or group 'otto'"),
      (["+a", "user:otto allow read"], "there is no user 'otto'"),
      (["+a", "group:anna allow read"], "there is no group 'anna'"),
      (["+a", "501 allow read"], "for an id, write 'user:501' or 'group:501'"),
      (
        ["+a", "anna allow fly"],
        "unknown right or inheritance word 'fly'; known are read, write, execute, append, list"
      ),
      (["+a", "anna allow"], "a right is missing"), (["+a", "anna permit read"], "'permit' is neither"),
      (["+a", "anna"], "'allow' or 'deny' must follow"), (["+a", ""], "there is no entry"),
      (["-a", " allow read"], "an entry must begin with a name"),
      (["-a#", "x"], "a number from 0 to 128, not 'x'"),
      (["-a#", "129"], "a number from 0 to 128, not '129'"),
      (["=a#", "-1", "anna allow read"], "not '-1'"),
      (["+a#", "99999999999999999999", "x"], "from 0 to 128"),
      (["+a", "anna allow read", "--json"], "'--json' can't be combined"),
    ])
  func whatCanNotBeUnderstoodChangesNothing(words: [String], message: String) {
    #expect(acl("+a", "bert allow read", "file").code == .ok)
    let result = shell.run(["acl"] + words + ["file"])
    #expect(result.code == .usage && result.errors.contains(message), "\(result.errors)")
    #expect(lines("file") == [" 0: user:bert allow read"])
  }

  @Test(
    arguments: [
      (["-a#", "2"], "file: there is no entry 2 in its ACL, which has 2 entries, counted from 0"),
      (["=a#", "2", "anna allow read"], "there is no entry 2"),
      (["+a#", "3", "anna allow read"], "there is no entry 3"),
      (["-a", "anna allow read"], "its ACL has no entry with 'user:anna allow'"),
      (["+a", "anna allow read"], "not in canonical order; give the position of the entry"),
      (["-C"], "file: its ACL is not in canonical order"),
    ])
  func whatDoesNotFitTheACLChangesNothing(words: [String], message: String) {
    let text = "bert allow read\nbert deny write\n"
    #expect(shell.run(["acl", "-E", "file"], input: text).code == .ok)
    let result = shell.run(["acl"] + words + ["file"])
    #expect(result.code == .failed && result.errors.contains(message), "\(result.errors)")
    #expect(lines("file") == [" 0: user:bert allow read", " 1: user:bert deny write"])
  }

  /// As on a Mac any place is the first where there is no entry; that is said.
  @Test func placeInAnEmptyACLIsTheFirstAndThatIsSaid() {
    for (action, place) in [("+a#", "99"), ("=a#", "7"), ("+ai#", "1")] {
      #expect(acl("-N", "file").code == .ok)
      let result = shell.run("acl", action, place, "anna allow read", "file")
      #expect(result.code == .ok && lines("file").count == 1)
      #expect(
        result.errors
          == "insula: file: the ACL had no entries, so the entry is number 0 and not \(place)\n")
    }
    #expect(acl("-N", "file").code == .ok)
    #expect(shell.run("acl", "+a#", "0", "anna allow read", "file").errors.isEmpty)
  }

  @Test func entry129IsRefused() {
    let most = (0..<128).map { "user:\($0 + 1000) allow read\n" }.joined()
    #expect(shell.run(["acl", "-E", "file"], input: most).code == .ok)
    for words in [["+a", "anna allow read"], ["+a#", "128", "anna allow read"]] {
      let result = shell.run(["acl"] + words + ["file"])
      #expect(result.code == .failed && result.errors.contains("would have 129 entries; the maximum is 128"))
    }
    #expect(lines("file").count == 128)
    #expect(acl("=a#", "127", "anna allow read", "file").code == .ok)
  }

  @Test func otherFilesAreDoneAfterOneThatFails() {
    let result = acl("+a", "anna allow read", "missing", "file", "/proc/version", "dir")
    #expect(result.code == .failed)
    #expect(result.errors.contains("insula: missing: No such file or directory\n"))
    #expect(result.errors.contains("insula: /proc/version: is not on an insula mount"))
    #expect(lines("file").count == 1 && lines("dir").count == 1)
    let shown = acl("missing", "file")
    #expect(shown.code == .failed && shown.output == "file:\n 0: user:anna allow read\n")
  }

  @Test func canonicalACLsAreFine() {
    #expect(acl("-C", "file").code == .ok)
    #expect(acl("+a", "anna allow read", "file").code == .ok)
    #expect(acl("+a", "anna deny write", "file").code == .ok)
    let result = acl("-C", "file", "dir")
    #expect(result.code == .ok && result.output.isEmpty && result.errors.isEmpty)
  }

  @Test func linksAreFollowedWhereTheyAreNamed() {
    #expect(symlink("file", shell.temporary.appending("link")) == 0)
    #expect(acl("+a", "anna allow read", "link").code == .ok)
    #expect(lines("file").count == 1)
  }

  @Test func wholeTreesWithoutFollowingLinks() throws {
    try shell.temporary.makeDirectory("dir/sub")
    try shell.temporary.write("", to: "dir/sub/deep")
    try shell.temporary.write("", to: "dir/a")
    #expect(symlink("../file", shell.temporary.appending("dir/link")) == 0)
    #expect(symlink("dir", shell.temporary.appending("way")) == 0)
    let result = acl("-R", "+a", "anna allow read", "dir")
    #expect(result.code == .ok && result.errors.isEmpty, "\(result.errors)")
    #expect(
      acl("-R", "dir").output == """
        dir:
         0: user:anna allow list
        dir/a:
         0: user:anna allow read
        dir/sub:
         0: user:anna allow list
        dir/sub/deep:
         0: user:anna allow read

        """)
    #expect(acl("file").output == "file: no ACL\n")
    // What has no list is passed over where a tree is shown.
    #expect(acl("-N", "dir/sub").code == .ok)
    #expect(!acl("-R", "dir").output.contains("dir/sub:"))
    // As chmod: a link that is named is not followed either.
    let link = acl("-RN", "way")
    #expect(link.code == .failed && link.errors.contains("way: is a symbolic link"))
    #expect(acl("-RN", "dir").code == .ok)
    #expect(acl("-R", "dir").output.isEmpty)
  }

  @Test func deepTreesNeedNoMoreDescriptors() throws {
    var here = try shell.temporary.open()
    for _ in 0..<1500 {
      here = try "d".withName { (name) throws(Errno) in
        try here.fd.makeDirectory(name, mode: 0o755)
        return try here.fd.open(name, O_RDONLY | O_DIRECTORY)
      }
    }
    let result = acl("-R", "+a", "anna allow list", "d")
    #expect(result.code == .ok && result.errors.isEmpty)
    #expect(try here.fd.attributeValue("user.test.acl", limit: 4096)?.count == 44 + 24)

    var context = Context.current()
    context.currentDirectory = shell.temporary.path
    var walk = FileWalk(context)
    var numbers: [Int32] = []
    walk.visit(["d"], recursively: true, followingLinks: false) { numbers.append($0.fd.raw) }
    #expect(numbers.count == 1500 && numbers.allSatisfy { $0 < 1000 })
  }

  @Test func directoryThatIsMovedMeanwhileLeadsNowhereElse() throws {
    try shell.temporary.makeDirectory("dir/sub")
    try shell.temporary.write("", to: "dir/sub/deep")
    try shell.temporary.write("", to: "dir/z")
    try shell.temporary.makeDirectory("else")
    try shell.temporary.write("", to: "else/z")
    var context = Context.current()
    context.currentDirectory = shell.temporary.path
    let (from, to) = (shell.temporary.appending("dir/sub"), shell.temporary.appending("else/sub"))
    context.console = Console(
      output: { _ in },
      errors: { #expect(String(decoding: $0, as: UTF8.self).contains("moved meanwhile")) })
    var walk = FileWalk(context)
    var paths: [String] = []
    walk.visit(["dir"], recursively: true, followingLinks: false) { object in
      paths.append(object.path)
      if object.path.hasSuffix("deep") { #expect(rename(from, to) == 0) }
    }
    #expect(paths == ["dir", "dir/sub", "dir/sub/deep"])
    #expect(walk.exitCode == .failed)
  }

  @Test func damagedACLIsNamedReplacedAndRemoved() throws {
    let damage = {
      try Program.run([
        "setfattr", "-n", "user.test.acl", "-v", "nonsense", shell.temporary.appending("file"),
      ])
    }
    guard try damage().status == 0 else { return }
    for words in [[], ["+a", "anna allow read"], ["-a#", "0"], ["-C"]] {
      let result = shell.run(["acl"] + words + ["file"])
      #expect(result.code == .failed && result.errors.contains("damaged (the magic number is missing)"))
      #expect(result.errors.contains("remove the ACL with 'insula acl -N'"))
    }
    #expect(shell.run(["acl", "-E", "file"], input: "anna allow read").code == .ok)
    #expect(lines("file") == [" 0: user:anna allow read"])
    _ = try damage()
    #expect(acl("-N", "file").code == .ok)
    #expect(acl("file").output == "file: no ACL\n")
  }

  @Test func programsGetJSON() throws {
    #expect(acl("+a", "anna allow read,only_inherit", "file", "dir").code == .ok)
    #expect(acl("+ai", "everyone deny delete", "file").code == .ok)
    try shell.temporary.write("", to: "bare")
    let result = acl("--json", "file", "dir", "bare")
    #expect(result.code == .ok)
    let found = try #require(
      try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
    #expect(found.map { $0["file"] as? String } == ["file", "dir", "bare"])
    #expect(found[2]["entries"] == nil && found[0]["canonical"] as? Bool == true)
    let entries = try #require(found[0]["entries"] as? [[String: Any]])
    #expect(entries.map { $0["principal"] as? String } == ["user:anna", "group:everyone"])
    #expect(entries.map { $0["verb"] as? String } == ["allow", "deny"])
    #expect(entries.map { $0["inherited"] as? Bool } == [false, true])
    #expect(entries[0]["words"] as? [String] == ["read"])
    #expect(entries[0]["uuid"] as? String == "FFFFEEEE-DDDD-CCCC-BBBB-AAAA000001F5")
    let onDirectory = try #require(found[1]["entries"] as? [[String: Any]])
    #expect(onDirectory[0]["words"] as? [String] == ["list", "only_inherit"])
  }
}
