// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What a hostile user or app may try with what is told of the space that apps use:
//
// - learn what others have: `othersAreNotTold`, `appLearnsOnlyTwoSums`
// - keep the daemon busy, or those who wait: `StorageUsageTests`, `KeptUsageTests`
// - put names into a page or on a terminal: `StoragePageTests`
// - have root write a page over something else: `StorageCommandTests`

/// `insula storage` on a mounted store.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct StorageTests {
  private static let fill = """
    head -c 3000000 /dev/zero >$HOME/Documents/d
    head -c 20000000 /dev/zero >$HOME/Library/Caches/c
    head -c 1000000 /dev/zero >$HOME/tmp/t
    head -c 100000 /dev/zero >"$HOME/Library/Application Support/loose"
    """

  private func json(_ result: ProgramResult) throws -> [String: Any] {
    try #require(result.status == 0, "\(result.errors)")
    return try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
  }

  private func item(_ result: ProgramResult) throws -> [String: Any] {
    let items = try #require(try json(result)["items"] as? [[String: Any]])
    return try #require(items.first { $0["user"] != nil })
  }

  private func sizes(_ item: [String: Any]) throws -> [String: Int] {
    try #require(item["sizes"] as? [String: Int])
  }

  @Test(arguments: [false, true])
  func whatAppsUseIsShown(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    try #require(try fixture.inside(Self.fill).status == 0)
    let before = try item(try fixture.shell("insula storage --json"))
    let parts = try sizes(before)
    let usage = try fixture.shell(
      "cd $DATA; du -sx --block-size=1 Documents Library/Caches tmp $BUNDLE | cut -f1", as: RunFixture.root)
    let expected = usage.output.split(separator: "\n").compactMap { Int($0) }
    if !rootless {
      #expect(["documents", "caches", "tmp", "bundle"].map { parts[$0] } == expected, "\(usage)")
    }
    #expect(parts["documents"] ?? 0 >= 3_000_000 && parts["bundle"] ?? 0 > 0)
    #expect(before["purgeable"] as? Int ?? 0 >= 21_000_000 && before["isRunning"] as? Bool == false)
    #expect(before["lastRun"] as? Int ?? 0 > 1_700_000_000)
    #expect("\(before["advice"] ?? "")".contains("unnamedSupport"))
    // A purge frees what was told, and that is told at once.
    let purge = try json(try fixture.shell("insula purge --dry-run --json"))
    let freed = (purge["freed"] as? [String: Any])?["bytes"] as? Int
    try #require(try fixture.shell("insula purge").status == 0)
    #expect(freed == before["purgeable"] as? Int)
    let after = try item(try fixture.shell("insula storage \(RunFixture.identifier) --json"))
    #expect(after["purgeable"] as? Int == 0)
    #expect(try sizes(after)["documents"] == parts["documents"])
    let history = try fixture.shell("insula storage --history")
    #expect(history.output.contains("caches") && history.output.contains("20 MB"), "\(history)")
    let page = try fixture.shell("insula storage --html -")
    #expect(page.output.hasPrefix("<!DOCTYPE html>") && page.output.contains(RunFixture.identifier))
    let text = try fixture.shell("insula storage notes")
    #expect(text.output.contains("documents") && text.output.contains("Application Support/loose"))
    // Of a store that is not mounted, too.
    try fixture.succeed("unmount", fixture.mounted.point)
    let unmounted = try fixture.mounted.run("storage", "--store", fixture.mounted.store, "--json")
    #expect(try sizes(try item(unmounted))["documents"] == parts["documents"], "\(unmounted.errors)")
    let told = try fixture.mounted.run("storage", "--store", fixture.mounted.store, "--history")
    #expect(told.output.contains("20 MB"), "\(told)")
  }

  @Test func othersAreNotTold() throws {
    let fixture = try RunFixture()
    try #require(try fixture.inside(Self.fill).status == 0)
    let other = try TemporaryAccount()
    let theirs = try fixture.shell("insula storage --json", as: other.account)
    #expect(try json(theirs)["items"] as? [[String: Any]] != nil)
    // The app itself is everyone's.
    #expect(try sizes(try item(theirs))["documents"] == 0, "\(theirs.output)")
    for user in ["null", "\(fixture.user.uid)"] {
      let answer = try fixture.ask(#"{"verb":"storage","storage":{"user":\#(user)}}"#, as: other.account)
      #expect(answer.contains(user == "null" ? #""documents":0"# : #""ok":false"#), "\(answer)")
    }
    let named = try fixture.shell("insula storage --user \(fixture.user.name)", as: other.account)
    #expect(named.ending == .notPermitted && named.errors.contains("only root"))
    // Root sees all, each by name.
    let all = try fixture.shell("insula storage", as: RunFixture.root)
    #expect(all.output.contains(fixture.user.name) && all.output.contains("everyone"), "\(all)")
    // History is each one's own, too.
    _ = try fixture.shell("insula purge")
    #expect(
      try fixture.shell("insula storage --history", as: other.account).output == "Nothing was purged.\n")
    #expect(
      try fixture.shell("insula storage --history", as: RunFixture.root).output.contains(fixture.user.name))
  }

  /// The sum is of what doesn't run, in steps, and nothing else is told inside.
  @Test func appLearnsOnlyTwoSums() throws {
    let fixture = try RunFixture()
    try fixture.install("Other")
    try fixture.install("Tool", options: ["--from", Program.insula])
    func tool(_ words: String) throws -> ProgramResult {
      try fixture.shell("insula run org.example.tool --args storage \(words)")
    }
    try #require(
      try fixture.shell(
        "SCRIPT='head -c 40000000 /dev/zero >$HOME/Library/Caches/c'; "
          + "insula run org.example.other -- sh -c \"$SCRIPT\""
      ).status == 0)
    // What is known by then is summed up.
    _ = try fixture.shell("insula storage", as: RunFixture.root)
    let space = try json(try tool("--json"))
    #expect(Set(space.keys) == ["total", "free", "importantUsage", "opportunisticUsage"], "\(space)")
    let free = try #require(space["free"] as? Int)
    let more = try #require(space["importantUsage"] as? Int) - free
    // 40 MB are two steps of 16 MiB.
    #expect(more == 2 << 24, "\(space)")
    #expect(space["opportunisticUsage"] as? Int ?? .max <= free + more)
    // statfs is honest.
    let honest = try fixture.inside("stat -f -c '%a %S' $HOME").output.split(separator: " ")
    let blocks = Int(honest[0]) ?? 0
    let size = Int(honest[1].trimmingCharacters(in: .newlines)) ?? 0
    #expect(abs(blocks * size - free) < 1 << 30, "\(honest) \(free)")
    for words in ["org.example.other", "--history", "--html x", "--user \(fixture.user.name)", "--store /x"] {
      let refused = try tool(words)
      #expect(refused.ending == .notPermitted && !refused.output.contains("40 MB"), "\(words): \(refused)")
    }
    let text = try tool("")
    #expect(text.status == 0 && !text.output.contains("other"), "\(text)")
  }
}
