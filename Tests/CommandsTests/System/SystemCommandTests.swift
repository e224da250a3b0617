// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// The system domain as its master replaces it, mounted and not.
@Suite(.enabled(if: MountedStore.isPossible)) struct SystemCommandTests {
  private let mounted: MountedStore

  init() throws { mounted = try MountedStore() }

  private func run(_ words: String...) throws -> ProgramResult {
    try mounted.run(words + (words[1] == "sign" ? [] : ["--store", mounted.store]))
  }

  private func make(_ version: String) throws -> String {
    let path = try mounted.temporary.makeDirectory("system\(version)")
    try mounted.temporary.makeDirectory("system\(version)/Library")
    try mounted.temporary.write("of \(version)\n", to: "system\(version)/Library/what")
    let signed = try run("system", "sign", path, "--identity", "Anna", "--version", version)
    guard signed.status == 0 else { throw MountedStore.Failure(words: signed.errors) }
    return path
  }

  private func prepare() throws {
    #expect(try mounted.run("identity", "new", "Anna", "--team", "TEAM").status == 0)
    let root = mounted.temporary.appending("root.pem")
    let exported = try mounted.run("identity", "export", "Anna")
    try mounted.temporary.write(exported.output, to: "root.pem")
    #expect(try run("trust", "add", root).status == 0)
  }

  @Test(arguments: [false, true]) func systemIsReplacedAndGoneBackFrom(isMounted: Bool) throws {
    try prepare()
    if isMounted { try mounted.mount() }
    let file = isMounted ? mounted.path("System/Library/what") : mounted.backing("System/Library/what")
    func what() -> String? { FD.text(of: file, limit: 100) }
    #expect(try run("system", "info").output.contains("unsigned, as in a new store"))
    #expect(try run("system", "rollback").errors.contains("there is no previous version"))
    #expect(
      try run("system", "update", make("1")).output
        == "The system domain is now version 1 of the team TEAM.\n")
    #expect(what() == "of 1\n")
    #expect(try run("system", "update", make("2")).status == 0 && what() == "of 2\n")
    #expect(try run("system", "info").output.contains("version 1 of the team TEAM"))
    #expect(
      try run("system", "rollback").output == "The system domain is again version 1 of the team TEAM.\n")
    #expect(what() == "of 1\n")
    #expect(try run("system", "verify").output == "It matches the signature of the team TEAM, version 1.\n")
    #expect(try run("system", "info", "--json").output.contains("\"version\" : \"1\""))
    if isMounted {
      let change = try Program.run(["touch", mounted.path("System/Library/new")])
      #expect(change.errors.contains("Read-only file system"))
    }
    let check = try mounted.run("check", mounted.store)
    #expect(check.output.contains("is in order"), "\(check.output)")
  }

  @Test func onlyRootChangesItAndEveryoneLearnsWhichItIs() throws {
    try prepare()
    try mounted.mount()
    #expect(try run("system", "update", make("1")).status == 0)
    let path = try make("2")
    func nobody(_ words: String...) throws -> ProgramResult {
      try Program.runAsNobody(
        [Program.insula] + words + ["--store", mounted.store], environment: ["HOME": "/nonexistent"])
    }
    for words in [["update", path], ["rollback"]] {
      let refused = try Program.runAsNobody(
        [Program.insula, "system"] + words + ["--store", mounted.store], environment: ["HOME": "/nonexistent"]
      )
      #expect(refused.status == 7 && refused.errors.contains("only root may change the system domain"))
    }
    #expect(try nobody("system", "info").output.contains("version 1 of the team TEAM"))
    #expect(FD.text(of: mounted.path("System/Library/what"), limit: 100) == "of 1\n")
  }

  @Test func damageIsFoundAndRefused() throws {
    try prepare()
    let path = try make("1")
    #expect(try run("system", "verify", path).status == 0)
    try mounted.temporary.write("other\n", to: "system1/Library/what")
    let found = try run("system", "verify", path)
    #expect(
      found.status == 8
        && found.errors.contains("Library/what: has different contents from those that were sealed"))
    let refused = try run("system", "update", path)
    #expect(refused.status == 1 && refused.errors.contains("Library/what: has different contents"))
    #expect(try run("system", "info").output.contains("unsigned"))
  }
}
