// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
@testable internal import Daemon
internal import Foundation
internal import Fuse
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// `insula log` on a store that nobody serves.
@Suite struct LogCommandTests {
  private let shell: Shell
  private var path: String { shell.temporary.appending("store") }

  init() throws {
    shell = try Shell()
    #expect(shell.run("init", shell.temporary.appending("store")).code == .ok)
  }

  private func append(_ entries: LogEntry...) throws {
    try StoreLog(Store(opening: path, .exclusive)).append(entries)
  }

  private func log(_ words: String...) -> Shell.Result { shell.run(["log", "--store", path] + words) }

  private func denied(_ rule: String, _ operation: String = "write", path: String = "Users/a/x") -> LogEntry {
    var entry = LogEntry(.denied, user: 501, app: "org.example.app", path: path, time: 1_795_514_400_000)
    entry.rule = rule
    entry.operation = operation
    return entry
  }

  @Test func emptyLogIsSaid() {
    #expect(log().output == "There are no entries.\n")
    #expect(log("--json").output == "")
    #expect(log("--since", "soon").code == .usage)
    #expect(log("no such app").code == .failed)
    #expect(shell.run("log", "--store", "/nonexistent").code == .noStore)
  }

  /// Each rule and each operation has words, and those of another version are shown as they are.
  @Test func everyRefusalIsExplained() throws {
    for rule in RefusalRule.allCases {
      for operation in RefusedOperation.allCases {
        let words = LogWords(denied(rule.rawValue, operation.rawValue), path: "/i/Users/a/x")
        let refusal = rule == .deadly ? "got an I/O error when it was to" : "may not"
        #expect(
          words.sentence.hasPrefix("org.example.app \(refusal) ") && words.sentence.hasSuffix("/i/Users/a/x"))
        #expect(words.advice?.isEmpty == false)
      }
    }
    let grant = LogWords(denied("read-only-grant"), path: "/i/Users/a/it's")
    #expect(
      grant.advice?.hasSuffix(
        "'insula grant org.example.app '/i/Users/a/it'\\''s' --read-write' lets the app change it") == true)
    var outside = denied("acl")
    outside.app = nil
    #expect(LogWords(outside, path: "/x").sentence == "a program may not write to /x")
    (outside.program, outside.pid) = ("sh", 7)
    #expect(LogWords(outside, path: "/x").sentence == "sh (pid 7) may not write to /x")
    let later = LogWords(denied("tides", "teleport"), path: "/x")
    #expect(later.sentence == "org.example.app may not teleport /x" && later.advice == "by the rule 'tides'")
    let event = LogWords(LogEntry(LogEntry.Event(rawValue: "sang"), app: "a.b", time: 0), path: nil)
    #expect(event.sentence == "sang a.b" && event.advice == nil)
  }

  @Test func entriesAreShown() throws {
    var repeated = denied("acl")
    repeated.more = 4321
    repeated.until = 1_795_514_460_000
    var rest = LogEntry(.denied, user: 502, app: "org.example.app", time: 1_795_514_470_000)
    rest.more = 70
    try append(
      denied("acl"), repeated, rest,
      LogEntry(.granted, user: 501, app: "a.b", by: 0, path: "Users/a/f", detail: "read-only", time: 0),
      LogEntry(.mounted, detail: "at /insula", time: 0))
    let lines = log().output.split(separator: "\n").map(String.init)
    try #require(lines.count == 7, "\(lines)")
    #expect(lines[0].hasSuffix(" [anna] org.example.app may not write to \(path)/tree/Users/a/x"))
    #expect(lines[1].hasPrefix("    its ACL refuses it"))
    #expect(lines[2].contains(": 4321 more times until "))
    #expect(
      lines[4].hasSuffix("[bert] org.example.app was refused 70 more things, which are not listed one by one")
    )
    #expect(lines[5].hasSuffix("[anna, by root] granted a.b \(path)/tree/Users/a/f (read-only)"))
    #expect(lines[6].hasSuffix("mounted the store (at /insula)"))
    #expect(log("--denied").output.split(separator: "\n").count == 5)
    #expect(log("a.b").output.split(separator: "\n").count == 1)
    #expect(log("--since", "2026-11-24T10:01:05Z").output.contains("70 more things"))
    #expect(log("--since", "2026-11-24T10:01:05Z").output.split(separator: "\n").count == 1)
    let records = log("--json").output.split(separator: "\n").compactMap {
      try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }
    #expect(records.count == 5)
    #expect(records.first?["rule"] as? String == "acl" && records.first?["user"] as? Int == 501)
    #expect(records.first?["time"] as? String == "2026-11-24T10:00:00Z")
    #expect((records.first?["advice"] as? String)?.hasPrefix("its ACL") == true)
  }

  /// Names, programs and words that strangers have chosen.
  @Test func nobodyForgesLines() throws {
    let evil = "x\n2026-11-24 10:00:00 [root] granted evil\u{1b}[2J\r\u{202e}\u{0}"
    var entry = denied(evil, evil, path: evil)
    entry.program = evil
    entry.detail = evil
    try append(entry, LogEntry(LogEntry.Event(rawValue: evil), user: 501, app: evil, detail: evil, time: 0))
    let text = log()
    #expect(text.output.split(separator: "\n").count == 3)
    #expect(text.output.unicodeScalars.allSatisfy { $0.isPrintable || $0 == "\n" })
    #expect(!text.output.contains("\n2026-11-24 10:00:00 [root] granted"))
    let json = log("--json")
    #expect(json.output.split(separator: "\n").count == 2)
    #expect(json.output.unicodeScalars.allSatisfy { $0.isPrintable || $0 == "\n" })
  }

  /// A terminal gets question marks, and a program what is there, to the byte.
  @Test func programsGetTheTrueName() throws {
    let names = ["a\u{1b}[2J\n", "r\u{202e}l", "\u{e000}\u{fffd}", "\u{e9}\u{7f}"].map { Array($0.utf8) }
    for name in names + [[0x62, 0xff, 0xfe]] {
      var entry = denied("acl")
      entry.setPath(Array("Users/".utf8) + name)
      try append(entry)
    }
    let records = log("--json").output.split(separator: "\n").compactMap {
      try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
    }
    let root = path + "/tree/Users/"
    #expect(
      records.prefix(4).map { $0["path"] as? String }
        == names.map { root + String(decoding: $0, as: UTF8.self) })
    #expect(records.prefix(4).allSatisfy { $0["pathBytes"] == nil })
    #expect(records.last?["pathBytes"] as? String == Array(root.utf8).asHexadecimal + "62fffe")
    #expect(log().output.contains("\(root)b??'"))
  }
}
