// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

@testable internal import Commands
internal import Foundation
internal import LinuxIO
internal import Policy
@testable internal import Store
internal import TestSupport
internal import Testing

/// What may stand where a person is typing.
@Suite struct CompletionTests {
  private let shell: Shell

  init() throws { shell = try Shell() }

  private func words(_ line: String) -> [String] {
    let typed = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    return Completion(typed).candidates.map(\.word)
  }

  @Test(
    arguments: [
      ("un", ["unmount", "uninstall"]), ("-v stat", ["status"]),
      ("--q", ["--quiet"]), ("user ", ["add", "list", "remove"]), ("trust r", ["remove"]),
      ("acl +", ["+a", "+ai", "+a#", "+ai#"]), ("sign --f", ["--force"]),
      (
        "user remove --",
        ["--delete-home", "--ejected", "--source", "--store", "--quiet", "--verbose", "--help"]
      ),
      ("completions ", ["bash", "zsh", "fish"]), ("help exi", ["exit-codes"]),
      ("help m", ["mount", "mount-options"]), ("status --j", ["--json"]),
      ("apps --user anna --j", ["--json"]),
      ("kill x --signal U", ["USR1", "USR2"]), ("kill x -s K", ["KILL"]),
      ("kill x --signal=K", ["--signal=KILL"]),
      ("mount -o nosu", ["nosuid"]), ("mount -o ro,nosuid,thr", ["ro,nosuid,threads="]),
      ("mount -o nosuid,nosu", []), ("path a inb", ["inbox"]), ("path cach", ["caches"]),
      ("path a group", ["group:"]), ("path caches --domain user,sys", ["user,system"]),
      ("config mount", ["mount.options"]), ("umount --l", ["--lazy"]), ("run a ls --", []),
      ("run a --args --u", []), ("run --u", ["--user"]), ("grant -- --", []), ("nonsense ", []),
      ("user no ", []),
      ("mount --back", []), ("apps x --json y", []), ("acl +a ", []),
    ])
  func candidates(line: String, expected: [String]) { #expect(words(line) == expected) }

  /// Every command is offered, and every option with all that help says of it.
  @Test func everythingIsOffered() {
    #expect(words("") == Verbs.names)
    for description in Insula.commands.map({ $0.description }) {
      let verb = description.name.split(separator: " ").map(String.init)
      #expect(verb.count == 1 || Completion([verb[0], ""]).candidates.map(\.word).contains(verb[1]))
      let offered = Completion(verb + ["-"]).candidates
      for option in description.options {
        let found = offered.contains { $0.word.drop { $0 == "-" } == option.name && $0.help == option.help }
        #expect(found == !option.isHidden, "\(description.name) \(option.name)")
      }
      // A value that somebody must think of has no candidates; all others have some, or a shell's own.
      for option in description.options
      where option.value?.hasPrefix("FILE") == true || option.name == "store" {
        if case .other = Completion(verb + ["--\(option.name)", ""]).kind {
          Issue.record("\(description.name) --\(option.name)")
        }
      }
      for argument in description.arguments
      where ["ID", "FILE", "BUNDLE", "STORE", "DIR"].contains(argument.name) {
        if case .other = argument.kind { Issue.record("\(description.name) \(argument.name)") }
      }
    }
  }

  @Test(
    arguments: [
      ("check ", ":directories\n"), ("acl ", ":files\n"), ("user add ", ":users\n"),
      ("init --admin-group ", ":groups\n"),
      ("apps --store ", ":directories\n"), ("apps --store=", ":directories\n"), ("trace ", ":programs\n"),
      ("trace ls ", ":files\n"), ("sign x --entitlements ", ":files\n"),
      ("user lis", "list\tLists the homes.\n"),
      ("identity new ", ""),
    ])
  func whatTheShellKnowsIsLeftToIt(line: String, expected: String) {
    for name in ["bash", "zsh", "fish"] {
      let typed = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
      #expect(shell.run(["completions", name, "--words"] + typed).output == expected)
    }
  }

  /// Bash takes an equals sign for a word, and replaces only what stands behind it.
  @Test func bashSplitsAtEqualsSigns() {
    #expect(shell.run("completions", "bash", "--words", "kill", "x", "--signal", "=", "HU").output == "HUP\n")
    #expect(
      shell.run("completions", "bash", "--words", "kill", "x", "--signal", "=").output.contains("\nHUP\n")
        == true)
    #expect(shell.run("completions", "zsh", "--words", "kill", "x", "--signal=HU").output == "--signal=HUP\n")
  }

  static let hostileNames = [
    "$(touch pwned)", "`touch pwned`", "a;touch pwned", "a\ntouch pwned\n", "-rf", ":files", "a'b", "a\"b",
    "a\tb",
    "\u{1b}[2J", "a|b", "a>pwned", "~", "*", "a\\b", "!!", "{a,b}", "a&", "#a", "a=b",
  ]

  /// Anyone may give an app or an identity any name; none gets into a command line but what is plain.
  @Test func hostileNamesAreNotOffered() throws {
    let store = try Self.storeWithApps(in: shell.temporary)
    let result = shell.run("completions", "bash", "--words", "info", "--store", store, "")
    let lines = Set(result.output.split(separator: "\n").map { String($0.prefix { $0 != "\t" }) })
    let identifiers = (0..<Self.hostileNames.count).map { "com.example.bad\($0)" }
    #expect(lines == Set(identifiers + ["com.example.editor", "My Editor", "com.example.two", "Zwölf"]))
    for name in Self.hostileNames { #expect(!Completion.isPlain(name)) }
    #expect(
      shell.run("completions", "fish", "--words", "info", "--store", store, "My").output
        == "My Editor\tcom.example.editor\n")
    // What can't be asked is not offered, and nothing is said.
    for words in [
      ["info", "--store", "nowhere", ""], ["info", "--user", "nobody-here", ""], ["sign", "--identity", ""],
    ] {
      let nothing = shell.run(["completions", "zsh", "--words"] + words)
      #expect(nothing.code == .ok && nothing.output.isEmpty && nothing.errors.isEmpty)
    }
  }

  @Test func identitiesAndRootsAreOffered() {
    for name in ["Anna", "Bert at work", "C'est"] { #expect(shell.run("identity", "new", name).code == .ok) }
    #expect(
      shell.run("completions", "zsh", "--words", "sign", "--identity", "").output == "Anna\nBert at work\n")
    let root = shell.run("identity", "export", "Anna").output
    #expect(shell.run(["trust", "add", "-"], input: root).code == .ok)
    let offered = shell.run("completions", "zsh", "--words", "trust", "remove", "").output
    #expect(offered.hasPrefix("Insula Development "))
  }

  /// A store of root's in which apps are noted as installed.
  static func storeWithApps(in temporary: TemporaryDirectory) throws -> String {
    let path = temporary.appending("store")
    let made = try Program.run([Program.insula, "init", path])
    #expect(made.status == 0, "\(made.errors)")
    let store = try Store(opening: path, .inspect)
    let registry = try Registry(state: store.state, path: path + "/state")
    func add(_ identifier: String, _ name: String) throws {
      try registry.add(
        InstalledApp(
          identifier: try #require(AppIdentifier(identifier)), user: nil, name: name, executable: "x",
          version: "7", shortVersion: "1.2", team: "TEAM", path: "Applications/\(identifier).app",
          seal: Array(0..<32), installed: 1_700_000_000, groups: [], clouds: []))
    }
    for (index, name) in hostileNames.enumerated() { try add("com.example.bad\(index)", name) }
    try add("com.example.editor", "My Editor")
    try add("com.example.two", "Zwölf")
    return path
  }
}
