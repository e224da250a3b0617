// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import CLinux
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula ls`, against what Mac's ls prints.
@Suite struct ListCommandTests {
  private let shell: Shell

  init() throws {
    shell = try Shell()
    try shell.temporary.write("12345", to: "b")
    try shell.temporary.write("", to: "a")
    try shell.temporary.write("", to: ".hidden")
    try shell.temporary.makeDirectory("dir", mode: 0o1750)
    try shell.temporary.write("", to: "dir/inner")
    #expect(symlink("b", shell.temporary.appending("link")) == 0)
  }

  private func ls(_ words: String...) -> Shell.Result { shell.run(["ls"] + words) }

  private func setTimes(_ name: String, _ seconds: Int) throws {
    let time = timespec(tv_sec: seconds, tv_nsec: 0)
    let file = try shell.temporary.open()
    let child = try name.withName { (name) throws(Errno) in try file.fd.open(name, pathOnly) }
    try child.fd.changeTimes(access: .keep, modification: .set(time))
  }

  /// Long lines with what differs from run to run left out: owner and group, and the time.
  private func normal(_ text: String) -> [String] {
    text.split(separator: "\n").map { line in
      String(line).replacing(#/[a-z0-9]+  [a-z0-9]+  /#, with: "U  G  ")
        .replacing(#/[A-Z][a-z]{2} [ 0-9]{2} ([0-9]{2}:[0-9]{2}| [0-9]{4})/#, with: "TIME")
    }
  }

  @Test func namesInTheirOrder() throws {
    #expect(ls().output == "a\nb\ndir\nlink\n")
    #expect(ls("-A").output == ".hidden\na\nb\ndir\nlink\n")
    #expect(ls("-a").output == ".\n..\n.hidden\na\nb\ndir\nlink\n")
    #expect(ls("-r").output == "link\ndir\nb\na\n")
    #expect(ls("-1", "b", "a").output == "a\nb\n")
    try setTimes("a", 2000)
    try setTimes("b", 1000)
    #expect(ls("-t", "a", "b").output == "a\nb\n" && ls("-tr", "a", "b").output == "b\na\n")
    #expect(ls("-S", "a", "b").output == "b\na\n")
  }

  @Test func filesBeforeDirectories() {
    #expect(ls("dir").output == "inner\n")
    #expect(ls("-d", "dir").output == "dir\n")
    #expect(ls("dir", "b").output == "b\n\ndir:\ninner\n")
    #expect(ls("-R").output == ".:\na\nb\ndir\nlink\n\n./dir:\ninner\n")
    let result = ls("missing", "b")
    #expect(result.code == .failed && result.output == "b\n")
    #expect(result.errors == "insula: missing: No such file or directory\n")
  }

  @Test func longAsOnAMac() throws {
    #expect(
      normal(ls("-l", "a", "b", "link").output) == [
        "-rw-r--r--  1 U  G  0 TIME a", "-rw-r--r--  1 U  G  5 TIME b",
        "lrwxrwxrwx  1 U  G  1 TIME link -> b",
      ])
    let lines = ls("-l").output.split(separator: "\n")
    #expect(
      lines.map { String($0.prefix(11)) }.dropFirst() == [
        "-rw-r--r-- ", "-rw-r--r-- ", "drwxr-x--T ", "lrwxrwxrwx ",
      ])
    // Blocks of 512 bytes: `b` has one of 4096, the directory too.
    #expect(lines[0].firstMatch(of: #/^total ([0-9]+)$/#).flatMap { Int($0.1) }.map { $0 % 8 } == 0)
    #expect(ls("-lF", "dir", "-d").output.hasSuffix(" dir/\n"))
    #expect(ls("-F").output == "a\nb\ndir/\nlink@\n")
  }

  @Test func namesOfAccountsOrNumbers() throws {
    _ = chown(shell.temporary.appending("a"), 501, 20)
    guard Program.isRoot else { return }
    #expect(ls("-l", "a").output.hasPrefix("-rw-r--r--  1 anna  staff  0 "))
    #expect(ls("-n", "a").output.hasPrefix("-rw-r--r--  1 501  20  0 "))
    _ = chown(shell.temporary.appending("b"), 7777, 7777)
    #expect(ls("-l", "a", "b").output.contains("-rw-r--r--  1 7777  7777   5 "))
    #expect(ls("-l", "a", "b").output.contains("-rw-r--r--  1 anna  staff  0 "))
  }

  @Test func timesNearAndFar() throws {
    let now = Int(Glibc.time(nil))
    var near = time_t(now - 86400)
    var local = tm()
    localtime_r(&near, &local)
    try setTimes("a", near)
    let clock = (local.tm_hour < 10 ? "0" : "") + "\(local.tm_hour):"
    #expect(ls("-l", "a").output.contains(" \(clock)"))
    // Both in 2001, whatever the time zone.
    try setTimes("a", 1_000_000_000)
    #expect(ls("-l", "a").output.contains(#/ Sep [ 0-9]{2}  2001 a\n/#))
    #expect(ls("-lT", "a").output.contains(#/ Sep [ 0-9]{2} [0-9]{2}:46:40 2001 a\n/#))
    try setTimes("a", now + 400 * 86400)
    #expect(ls("-l", "a").output.contains(#/  2[0-9]{3} a\n/#))
  }

  @Test(
    arguments: [
      (0, "0B"), (999, "999B"), (1000, "1.0K"), (1024, "1.0K"), (1536, "1.5K"), (10137, "9.9K"),
      (10240, "10K"),
      (1_023_000, "999K"), (1 << 20, "1.0M"), (5 << 30, "5.0G"), (Int.max, "8192P"),
    ])
  func sizesWithUnits(size: Int, text: String) {
    #expect(LongFormat.withUnit(size) == text)
  }

  @Test func aclsFlagsAndAttributes() throws {
    #expect(shell.run("acl", "+a", "anna allow read", "a").code == .ok)
    #expect(shell.run("acl", "+a", "everyone deny delete", "dir").code == .ok)
    #expect(shell.run("flags", "uchg,hidden", "a").code == .ok)
    let plain = normal(ls("-ld", "a", "b", "dir").output)
    #expect(plain.map { String($0.prefix(11)) } == ["-rw-r--r--+", "-rw-r--r-- ", "drwxr-x--T+"])
    #expect(
      normal(ls("-leO", "a").output) == [
        "-rw-r--r--+ 1 U  G  uchg,hidden 0 TIME a", " 0: user:anna allow read",
      ])
    #expect(normal(ls("-lO", "b").output) == ["-rw-r--r--  1 U  G  - 5 TIME b"])
    #expect(ls("-lde", "dir").output.hasSuffix(" dir\n 0: group:everyone deny delete\n"))
    #expect(ls("-ne", "a").output.hasSuffix("\n 0: FFFFEEEE-DDDD-CCCC-BBBB-AAAA000001F5 allow read\n"))
    // Attributes win, but not those through which the list is reached.
    let path = shell.temporary.appending("a")
    #expect(try Program.run(["setfattr", "-n", "user.test.copy", "-v", "xx", path]).status == 0)
    #expect(ls("-l", "a").output.hasPrefix("-rw-r--r--+"))
    #expect(try Program.run(["setfattr", "-n", "user.com.apple.quarantine", "-v", "0081", path]).status == 0)
    #expect(ls("-l", "a").output.hasPrefix("-rw-r--r--@"))
    #expect(
      ls("-le@", "a").output.hasSuffix(
        " a\n\tuser.com.apple.quarantine\t   4 \n 0: user:anna allow read\n"))
    // An empty list is no reason for a plus.
    #expect(shell.run("acl", "-a#", "0", "dir").code == .ok)
    #expect(ls("-ld", "dir").output.hasPrefix("drwxr-x--T "))
  }

  @Test func anyFilesystemCanBeListed() {
    let result = ls("-leO@", "/proc/version")
    #expect(result.code == .ok && result.errors.isEmpty)
    #expect(result.output.hasPrefix("-r--r--r--  1 root  "))
    #expect(ls("-l", "/dev/null").output.contains(#/^crw-rw-rw-  1 root  [a-z0-9]+  1, 3 /#))
  }

  @Test func linksAreFollowedWhereNothingIsAskedOfThem() {
    #expect(symlink("dir", shell.temporary.appending("way")) == 0)
    #expect(symlink("nowhere", shell.temporary.appending("lost")) == 0)
    #expect(ls("way").output == "inner\n")
    #expect(ls("-l", "way").output.hasSuffix(" way -> dir\n"))
    #expect(ls("lost").output == "lost\n")
    #expect(ls("-R", "way").output == "way:\ninner\n")
  }

  @Test func terminalIsNotUpset() throws {
    try shell.temporary.makeDirectory("odd")
    try shell.temporary.write("", to: "odd/\u{1b}[2Jü")
    #expect(shell.run(["ls", "odd"], isTerminal: true).output == "?[2Jü\n")
    #expect(shell.run(["ls", "odd"]).output == "\u{1b}[2Jü\n")
  }

  @Test func programsGetJSON() throws {
    #expect(shell.run("acl", "+a", "anna allow read", "b").code == .ok)
    #expect(shell.run("flags", "uchg", "b").code == .ok)
    let result = ls("--json")
    let found = try #require(
      try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]])
    #expect(found.map { $0["file"] as? String } == ["./a", "./b", "./dir", "./link"])
    #expect(found.map { $0["kind"] as? String } == ["file", "file", "directory", "symlink"])
    #expect(found[1]["size"] as? Int == 5 && found[1]["mode"] as? String == "644")
    #expect(found[1]["flags"] as? [String] == ["uchg"] && found[3]["target"] as? String == "b")
    #expect((found[1]["entries"] as? [[String: Any]])?.first?["verb"] as? String == "allow")
    #expect(found[0]["entries"] == nil)
  }
}
