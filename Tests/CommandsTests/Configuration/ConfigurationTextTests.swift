// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import TestSupport
internal import Testing

/// What a file says, and what it gets for lines that make no sense.
@Suite struct ConfigurationTextTests {
  private func read(_ text: String, isMachines: Bool = true) -> ConfigurationText {
    ConfigurationText(Array(text.utf8), isMachines: isMachines)
  }

  @Test func linesAreRead() {
    let text = read(
      """
      # A comment.
      \t # Another one
      [machine]
      store=/srv/one
        mount-point   =   /srv/two words \t

      [ user ]
      store = "~/with # sign"
      [mount]
      options = fsname="a b",noatime
      [machine]
      admin-group = staff
      [sign]
      identity = " Anna "
      """)
    #expect(text.problems == [])
    #expect(
      text.entries.map { "\($0.line) \($0.key.path)=\($0.value)" } == [
        "4 machine.store=/srv/one", "5 machine.mount-point=/srv/two words",
        "8 user.store=~/with # sign", "10 mount.options=fsname=\"a b\",noatime",
        "12 machine.admin-group=staff", "14 sign.identity= Anna ",
      ])
  }

  @Test(arguments: ["", "\n\n", "# only this", "[user]", "[mount]\noptions =", "[mount]\noptions = \"\""])
  func nothingIsWrong(text: String) { #expect(read(text).problems == []) }

  @Test(
    arguments: [
      ("[machin]\nstore = /x", 1, "no section 'machin' (did you mean 'machine'?)"),
      ("[nothing]", 1, "known are [machine], [user], [mount], [sign]"),
      ("[machine\n", 1, "does not end in ']'"), ("store = /x", 1, "belongs below [machine] or [user]"),
      ("\nnothing = /x", 2, "write a '[section]' above it"),
      ("[user]\nstroe = /x", 2, "[user] has no key 'stroe' (did you mean 'store'?); known are store"),
      ("[mount]\nstore = /x", 2, "belongs below [machine] or [user]"),
      ("[user]\nSTORE = /x", 2, "did you mean 'store'"), ("[user]\n= /x", 2, "has no key ''"),
      ("[user]\nstore", 2, "neither a '[section]' nor 'key = value' nor a comment"),
      ("[user]\n; store", 2, "comments begin with '#'"),
      ("[user]\nstore = x", 2, "'x' is not a path that begins with '/' or '~/'"),
      ("[machine]\nstore = ~/x", 2, "'~/x' is not a path that begins with '/'"),
      ("[user]\nstore =", 2, "'' is not a path"), ("[user]\nstore = ~anna/x", 2, "begins with '/' or '~/'"),
      ("[user]\nstore = /x # mine", 2, "a comment needs a line of its own"),
      ("[user]\nstore = /x\n\nstore = /y", 4, "set already in line 2"),
      ("[sign]\nidentity =", 2, "is empty; it must be the name of an identity"),
      ("[mount]\noptions = noatme", 2, "unknown mount option 'noatme' (did you mean 'noatime'?)"),
      ("[mount]\noptions = threads=0", 2, "a whole number from 1 to 256"),
      ("[mount]\noptions = ro,remount", 2, "'remount' changes a mount that is there"),
      ("[user]\r\nstore = /x\r\n", 1, "carriage return"), ("[user]\nstore = /\u{1b}[2J", 2, "can't be shown"),
      ("[user]\nstore = /a\u{0}b", 2, "can't be shown"), ("[user]\nstore = /\u{202e}b", 2, "can't be shown"),
      ("\u{feff}[user]", 1, "can't be shown"),
      ("[user]\nstore = /\(String(repeating: "x", count: 4096))", 2, "longer than 4096 bytes"),
    ])
  func whatMakesNoSenseIsNamed(text: String, line: Int, fragment: String) throws {
    let problem = try #require(read(text).problems.first)
    #expect(problem.line == line && problem.message.contains(fragment), "\(problem)")
    #expect(problem.message.unicodeScalars.allSatisfy { $0.value >= 0x20 })
  }

  @Test func whatIsNotUTF8IsNamed() {
    let text = ConfigurationText(Array("[user]\nstore = /".utf8) + [0xff, 10], isMachines: true)
    #expect(text.problems.map(\.line) == [2] && text.entries.isEmpty)
  }

  @Test func aFileHasALimit() {
    let bytes = [UInt8](repeating: 10, count: ConfigurationText.sizeLimit)
    #expect(ConfigurationText(bytes, isMachines: true).problems == [])
    #expect(ConfigurationText(bytes + [10], isMachines: true).problems.count == 1)
  }

  @Test func aUserHasNoSayInWhatRootDecides() {
    for key in ConfigurationKey.all {
      let value = key.section == .mount ? "ro" : key.name == "keep" ? "daily=1" : "/x"
      let text = read("[\(key.section.rawValue)]\n\(key.name) = \(value)", isMachines: false)
      #expect(text.entries.isEmpty == (key.section == .machine), "\(key.path)")
      #expect(text.problems.isEmpty == (key.section != .machine), "\(key.path)")
    }
  }

  /// After a line that makes no sense the others count, so that all problems are told at once.
  @Test func readingGoesOn() {
    let text = read("[x]\nfoo = bar\n[user]\nstore\nstore = /x\nmount-point = y\n")
    #expect(text.problems.map(\.line) == [1, 4, 6])
    #expect(text.entries.map(\.line) == [5])
  }

  @Test func nothingStopsTheReader() {
    var random = SeededRandom(seed: 7)
    let pieces = [
      "[", "]", "machine", "user", "store", "options", "=", "\"", "#", " ", "\t", "\n", "/", "~/", ",",
    ]
    for _ in 0..<2000 {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0...40, using: &random) {
        if Int.random(in: 0...3, using: &random) == 0 {
          bytes.append(UInt8.random(in: 0...255, using: &random))
        } else {
          bytes += Array((pieces.randomElement(using: &random) ?? "").utf8)
        }
      }
      let text = ConfigurationText(bytes, isMachines: false)
      let lines = bytes.split(separator: 10, omittingEmptySubsequences: false).count
      #expect(text.entries.count + text.problems.count <= lines)
      for entry in text.entries { #expect(entry.key.kind.refusal(of: entry.value) == nil) }
    }
  }
}
