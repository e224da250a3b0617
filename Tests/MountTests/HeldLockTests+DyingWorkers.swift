// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What a worker waits for when it dies.
extension HeldLockTests {
  /// A copy within the kernel into a file that its user holds, or more room for a file of root's that a user
  /// reads.
  enum HeldContents: CaseIterable { case copy, room }

  @Test(arguments: HeldContents.allCases) func contentsThatWaitKeepNoWorker(contents: HeldContents) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let worker = try #require(try run.mounted.daemon())
    let holder: Background
    let change: Background
    let changed: () -> Bool
    let output = run.mounted.temporary.appending("changed")
    switch contents {
    case .copy:
      let directory = try directory(.home)
      holder = try hold(["\(directory.held)/held"])
      let copy = "import os; os.copy_file_range(os.open('source', 0), os.open('held', 1), 9)"
      let script = "cd '\(directory.inTree)' && echo 12345678 >source && exec python3 -c \"\(copy)\""
      change = try Background(["sh", "-c", script], as: run.user, output: output, run.mounted.temporary)
      changed = { (try? run.shell("cat '\(directory.inTree)/held'").output) == "12345678\n" }
    case .room:
      let file = run.mounted.path("Users/Shared/file")
      let made = try run.shell("head -c 65536 /dev/zero >\(file) && chmod 644 \(file)", as: RunFixture.root)
      try #require(made.ending == .ok, "\(made)")
      holder = try hold(["read:\(file)"])
      change = try Background(
        ["fallocate", "-l", "200000", file], as: RunFixture.root, output: output, run.mounted.temporary)
      changed = { (try? run.shell("stat -c %s \(file)").output) == "200000\n" }
    }
    #expect(eventually { waitsForDisk(worker) })
    #expect(kill(worker, SIGKILL) == 0)
    try othersAreServed("after")
    #expect(try run.mounted.daemon().map { $0 != worker } == true)
    #expect(run.mounted.daemonLog?.contains("it is left") == true)
    try holder.end()
    try change.end()
    #expect(eventually(changed))
  }

  /// A file of a version of the system domain that is removed, which everybody may read.
  @Test func systemUpdatesWaitForNobody() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let mounted = run.mounted
    try mounted.temporary.makeDirectory("systems", mode: 0o755)
    func update(_ version: String) throws -> ProgramResult {
      let made = mounted.temporary.appending("systems/\(version)")
      let script = """
        mkdir -pm 755 \(made)/Library && head -c 8192 /dev/urandom >\(made)/Library/file
        chmod 644 \(made)/Library/file
        """
      try #require(Program.run(["sh", "-c", script]).status == 0)
      try run.succeed("system", "sign", made, "--identity", "tester", "--version", version)
      return try mounted.run(
        ["system", "update", made, "--store", mounted.store], before: ["timeout", "30"])
    }
    #expect(try update("1").ending == .ok)
    let holder = try hold(["read:\(mounted.path("System/Library/file"))"])
    let worker = try #require(try mounted.daemon())
    for version in ["2", "3", "4"] {
      let updated = try update(version)
      #expect(updated.ending == .ok, "\(version): \(updated)")
    }
    #expect(eventually { waits(worker, in: "vfs_unlink") })
    let kept = mounted.temporary.appending("store/state/system")
    let names = { (try? FileManager.default.contentsOfDirectory(atPath: kept).sorted()) ?? [] }
    #expect(
      eventually { names().count == 2 && names().first?.hasPrefix("left-") == true }, "\(names())")
    #expect(kill(worker, SIGKILL) == 0)
    try othersAreServed("after")
    #expect(try mounted.daemon().map { $0 != worker } == true)
    try holder.end()
    #expect(eventually { names() == ["previous"] }, "\(names())")
  }

  /// A user's container that nobody can look up: what others change and start needs none of theirs.
  @Test func containersThatAreHeldConcernNobodyElse() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let mounted = run.mounted
    try run.install("Second")
    try mounted.temporary.makeDirectory("made", mode: 0o755)
    let made = mounted.temporary.appending("made")
    try run.succeed("new-app", "Own", made)
    try run.succeed("sign", "\(made)/Own.app", "--identity", "tester")
    try #require(Program.run(["chmod", "-R", "a+rX", made]).status == 0)
    let containers = mounted.path("Users/\(run.user.name)/Library/Containers")
    let begun = try run.shell(
      "insula path $APP caches >/dev/null && head -c 8192 /dev/zero >'\(containers)/held'")
    try #require(begun.ending == .ok, "\(begun)")
    let holder = try hold(["read:\(containers)/held"])
    let worker = try #require(try mounted.daemon())
    let removal = try Background(
      ["rm", "-f", "\(containers)/held"], as: run.user, output: mounted.temporary.appending("removed"),
      mounted.temporary)
    #expect(eventually { waits(worker, in: "vfs_unlink") })
    let start = try Background(
      [Program.insula, "run", "org.example.second", "--store", mounted.point, "--", "true"], as: run.user,
      output: mounted.temporary.appending("started"), mounted.temporary)
    #expect(eventually { waits(worker, in: "walk_component") })
    func change(_ step: String) throws {
      let install = "timeout 20 \"$INSULA\" install --store \"$POINT\" \(made)/Own.app"
      let run = "timeout 20 \"$INSULA\" run --store \"$POINT\" org.example.own -- true"
      let remove = "timeout 20 \"$INSULA\" uninstall --store \"$POINT\" org.example.own"
      let changed = try self.run.shell("\(install) && \(run) && \(remove)", as: other.account)
      #expect(changed.ending == .ok, "\(step): \(changed)")
    }
    try change("before")
    #expect(kill(worker, SIGKILL) == 0)
    try othersAreServed("after")
    #expect(try mounted.daemon().map { $0 != worker } == true)
    try change("after")
    try holder.end()
    try removal.end()
    try start.end()
  }
}
