// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import Policy
internal import TestSupport
internal import Testing

/// A name that a stranger chose gives no orders to a terminal, and forges no line, whichever command prints
/// it.
@Suite struct SanitizedOutputTests {
  /// Clears a screen, sets a window's title, forges a line, turns the direction of writing, is no text.
  private static let name =
    "a\u{1b}[2J\u{1b}]0;x\u{7}\ninsula: forged\r\t\u{9b}31m\u{202e}\u{2028}\u{e000}\u{7f}z"
  private let shell: Shell

  init() throws { shell = try Shell() }

  private func expectSanitized(
    _ result: Shell.Result, _ words: [String], location: SourceLocation = #_sourceLocation
  ) {
    for text in [result.output, result.errors] {
      let bad = text.unicodeScalars.filter { !$0.isPrintable && $0 != "\n" }
      #expect(bad.isEmpty, "\(words): \(bad.map { String($0.value, radix: 16) })", sourceLocation: location)
      let lines = text.split(separator: "\n").dropFirst(text == result.errors ? 1 : 0)
      #expect(!lines.contains { $0.hasPrefix("insula: forged") }, "\(words)", sourceLocation: location)
    }
  }

  @Test func everyWayOutOfTheConsoleIsSanitized() {
    nonisolated(unsafe) var bytes: [UInt8] = []
    let console = Console(
      output: { bytes += $0 }, errors: { bytes += $0 }, progress: { bytes += $0 }, isTerminal: true)
    console.print(Self.name)
    console.print(lines: [Self.name, "b"])
    console.print(path: Self.name)
    console.print(table: [["NAME", "x"], [Self.name, Self.name]])
    console.print(exactly: console.shown(Array(Self.name.utf8) + [0xff, 10]) + [10])
    console.print(json: [Self.name: Self.name])
    console.note(Self.name, [Self.name])
    console.note(CommandFailure(.failed, Self.name, lines: [Self.name]))
    console.relay(errors: Array("one\nt\u{1b}wo\n".utf8) + [0xff])
    console.print(text: "first\n\nthird\u{1b}\n")
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.unicodeScalars.allSatisfy { $0.isPrintable || $0 == "\n" })
    #expect(!text.contains("\ninsula: forged"))
    #expect(text.hasSuffix("one\nt?wo\n?\nfirst\n\nthird?\n"))
    bytes = []
    console.show(progress: Self.name)
    #expect(bytes.filter { $0 == 0x1b }.count == 1 && !bytes.contains(10))
  }

  /// A program gets what is there, to the letter.
  @Test func programsGetTheRealName() throws {
    nonisolated(unsafe) var bytes: [UInt8] = []
    let console = Console(output: { bytes += $0 }, errors: { _ in })
    console.print(path: Self.name)
    #expect(bytes == Array(Self.name.utf8) + [10])
    bytes = []
    let ranges: [Range<UInt32>] = [0..<0x2100, 0xe000..<0xe010, 0xfe00..<0x1_0010, 0xe_0000..<0xe_0100]
    let everything = ranges.joined().compactMap(Unicode.Scalar.init).map(String.init).joined()
    console.print(json: [everything])
    #expect(try JSONDecoder().decode([String].self, from: Data(bytes)).first == everything)
    #expect(String(decoding: bytes, as: UTF8.self).unicodeScalars.allSatisfy { $0.isPrintable || $0 == "\n" })
  }

  /// Whatever a command says of a word that makes no sense to it.
  @Test(arguments: Insula.commands.map { $0.description })
  func everyCommandSanitizesItsArguments(description: CommandDescription) throws {
    // Not those that would go on without a word: what is named must be all that they look at.
    let names = description.options.map(\.name)
    let places = names.contains("store") ? ["--store", Self.name] : []
    let verb = description.name.split(separator: " ").map(String.init)
    var tries = [verb + [Self.name], verb + ["--\(Self.name)"]]
    tries.append(verb + places + description.arguments.map { _ in Self.name })
    tries.append(verb + places + [Self.name, Self.name, Self.name])
    tries.append(
      verb + places + ["org.example.note"] + description.arguments.dropFirst().map { _ in Self.name })
    for option in description.options where option.value != nil && option.name != "store" {
      tries.append(
        verb + places + ["--\(option.name)"] + [Self.name] + description.arguments.map { _ in Self.name })
    }
    for words in tries { expectSanitized(try run(words), words) }
  }

  /// A daemon is the program once more, which this process is not.
  private func run(_ words: [String]) throws -> Shell.Result {
    guard words.first == "mount" else { return shell.run(words, isTerminal: true) }
    let result = try Program.run([Program.insula] + words, in: shell.temporary.path)
    return Shell.Result(code: .failed, output: result.output, errors: result.errors)
  }

  @Test func namesOfFilesWithACLsAndFlagsAreSanitized() throws {
    try shell.temporary.makeDirectory("d")
    for name in [Self.name, "plain"] {
      try shell.temporary.write("", to: "d/\(name)")
      #expect(shell.run("acl", "+a", "everyone deny write", "d/\(name)").code == .ok)
      #expect(shell.run("flags", "hidden", "d/\(name)").code == .ok)
    }
    let path = shell.temporary.appending("d/\(Self.name)")
    #expect(try Program.run(["setfattr", "-n", "user.a\u{1b}[31m\nb\u{202e}", "-v", "x", path]).status == 0)
    let raw = Array(shell.temporary.appending("d/").utf8) + [0x62, 0xff, 0xfe, 0x0a]
    try raw.withName { (name) throws(Errno) in
      _ = try FD.cwd.open(name, O_WRONLY | O_CREAT, mode: 0o600)
    }
    #expect(mkdir(shell.temporary.appending("d/\u{1b}[3mdir\n"), 0o700) == 0)
    let commands = [
      ["acl", "d/\(Self.name)"], ["acl", "d/\(Self.name)", "d/plain"], ["acl", "-R", "d"],
      ["acl", "--json", "-R", "d"], ["acl", "-C", "-R", "d"], ["acl", "-a#", "7", "d/\(Self.name)"],
      ["flags", "d/\(Self.name)", "d/plain"], ["flags", "-R", "d"], ["flags", "--json", "-R", "d"],
      ["ls", "d"], ["ls", "-leO@", "d"], ["ls", "-R", "d", "."], ["ls", "-lR@", "--json", "d"],
      ["ls", "-ln", "d"],
      ["verify", "d/\(Self.name)"], ["sign", "d/\(Self.name)"], ["check", "d/\(Self.name)"], ["status", "d"],
    ]
    for words in commands {
      let result = shell.run(words, isTerminal: true)
      // The blank line and the tab are those of 'ls'.
      let output = result.output.replacing("\t", with: " ")
      expectSanitized(Shell.Result(code: result.code, output: output, errors: result.errors), words)
    }
    let lists = shell.run(["acl", "-R", "d"], isTerminal: true).output
    #expect(lists.contains("d/plain:\n 0: group:everyone deny write\n"))
  }

  @Test func checkOfAStoreSanitizesNames() throws {
    #expect(shell.run("init", "store").code == .ok)
    for place in ["Users", "Applications", "Library"] {
      try shell.temporary.makeDirectory("store/tree/\(place)/\(Self.name)")
    }
    for words in [
      ["check", "store"], ["check", "store", "--deep"], ["check", "store", "--json"],
      ["user", "list", "--store", "store"],
      ["user", "list", "--store", "store", "--json"], ["user", "remove", Self.name, "--store", "store"],
    ] { expectSanitized(shell.run(words, isTerminal: true), words) }
  }

  /// A log in which strangers may write lines says nothing.
  @Test func logHasOneLineForEachMessage() throws {
    let folder = try TemporaryDirectory()
    let store = folder.appending("store\n2026-01-01T00:00:00Z insula: forged\u{1b}[2J")
    #expect(try Program.run([Program.insula, "init", store]).status == 0)
    guard MountedStore.isPossible else { return }
    let point = try folder.makeDirectory("point")
    #expect(try Program.run([Program.insula, "mount", store, point]).status == 0)
    #expect(try Program.run([Program.insula, "unmount", point]).status == 0)
    let log = FD.text(of: store + "/state/daemon.log", limit: 1 << 20) ?? ""
    #expect(log.contains("forged?[2J is mounted at"))
    #expect(!log.contains("\n2026-01-01") && !log.contains("\u{1b}"))
  }

  /// Whoever keeps a mount busy chose the names of its processes and files.
  @Test(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
  func namesOfUsersOfAMountAreSanitized() throws {
    let mounted = try MountedStore()
    #expect(try Program.run([Program.insula, "mount", mounted.store, mounted.point]).status == 0)
    let folder = mounted.point + "/Users/Shared/\(Self.name)"
    #expect(mkdir(folder, 0o755) == 0)
    let program = try mounted.temporary.makeDirectory("bin") + "/\u{1b}[7m\nb\u{9b}x"
    #expect(try Program.run(["cp", "/bin/sleep", program]).status == 0)
    let script = "cd \"$1\"; exec 3>file; \"$2\" 60 & echo $!"
    let pid = try Program.run(["sh", "-c", script, "sh", folder, program]).output.dropLast()
    defer { if let pid = Int32(pid) { kill(pid, SIGKILL) } }
    let result = try Program.run([Program.insula, "unmount", mounted.point])
    #expect(result.status == 3 && result.errors.contains("pid \(pid) (?[7m"))
    #expect(result.errors.contains("end these first"))
    #expect(result.errors.unicodeScalars.allSatisfy { $0.isPrintable || $0 == "\n" })
    #expect(!result.errors.contains("\ninsula: forged"))
    if let pid = Int32(pid) { kill(pid, SIGKILL) }
    #expect(try eventually { try Program.run([Program.insula, "unmount", mounted.point]).status == 0 })
  }
}
