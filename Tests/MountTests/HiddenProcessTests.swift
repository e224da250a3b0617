// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// The attack: a process holds the lock of its own memory map for as long as its user likes. Whoever reads
// /proc/PID/maps of it waits, and with them whoever waits for that.

/// A user's process that nobody can look at makes nobody wait.
@Suite(.serialized, .enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HiddenProcessTests {
  /// Before a command: one that waits all the same ends, and the test with it.
  private static let limited = ["timeout", "-s", "KILL", "200"]

  private static func words(ofHidden pid: Int32) -> String {
    "pid \(pid) (python3) does not let itself be looked at"
  }

  /// A process of somebody's that has a directory as its own; its number.
  private func sleeper(in directory: String, as account: Account? = nil) throws -> Int32 {
    let become = account.map {
      ["setpriv", "--reuid=\($0.uid)", "--regid=\($0.gid)", "--clear-groups"]
    }
    let started = try Program.run(
      (become ?? []) + ["sh", "-c", "cd '\(directory)' && { sleep 600 >/dev/null 2>&1 & echo $!; }"])
    return try #require(Int32(started.output.dropLast()), "\(started)")
  }

  /// The same of root's, where only somebody else gets.
  private func sleeperOfRoot(in directory: String, reachedBy account: Account) throws -> Int32 {
    let script = """
      import os, subprocess, sys
      os.seteuid(int(sys.argv[2])); os.chdir(sys.argv[1]); os.seteuid(0)
      print(subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)
      """
    let started = try Program.run(["python3", "-c", script, directory, "\(account.uid)"])
    return try #require(Int32(started.output.dropLast()), "\(started)")
  }

  private func end(_ pid: Int32) throws {
    kill(pid, SIGKILL)
    #expect(try Program.waitForEnd(pid))
  }

  @Test func commandsWaitForNoProcessThatHides() throws {
    let mounted = try MountedStore.mounted()
    for name in ["one", "two"] {
      try mounted.temporary.makeDirectory(name)
      let added = try mounted.run(
        "volume", "add", mounted.temporary.appending(name), "--store", mounted.point)
      try #require(added.status == 0, "\(added)")
    }
    let user = try sleeper(in: mounted.point)
    defer { kill(user, SIGKILL) }
    let hiding = try HidingProcesses(count: 2)
    try hiding.hide()
    for name in ["one", "two"] {
      let ejected = try mounted.run(
        ["volume", "eject", name, "--store", mounted.point], before: Self.limited)
      #expect(ejected.status == 0, "\(ejected)")
    }
    let refused = try mounted.run(["unmount", mounted.point], before: Self.limited)
    #expect(refused.ending == .busy && refused.errors.contains("pid \(user) (sleep): working directory"))
    for pid in hiding.pids { #expect(refused.errors.contains(Self.words(ofHidden: pid)), "\(refused)") }
    hiding.expectToHide()
    try hiding.end()
    try end(user)
    #expect(try mounted.unmount().ending == .ok)
  }

  /// Of two users who hide, one locks a volume and root the other's; who uses one openly is named.
  @Test(.enabled(if: EncryptedFixture.isPossible, "gocryptfs is missing"))
  func volumesAreLockedBesideProcessesThatHide() throws {
    let fixture = try EncryptedFixture()
    let (anna, ben) = (try HidingProcesses(), try HidingProcesses())
    // Those whose volumes are unlocked; pgrep(1) would wait for who hides.
    func owners() throws -> Set<UInt32> {
      let processes = try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { Int32($0) }
      let programs = processes.filter {
        FD.text(of: "/proc/\($0)/comm", limit: 64) == "gocryptfs\n"
      }
      return Set(programs.compactMap { ProcessID.user(of: $0) }).intersection([
        anna.account.uid, ben.account.uid,
      ])
    }
    for (name, user) in [("Annas", anna), ("Bens", ben)] {
      try fixture.expect("create \(name); echo x >$V/\(name)/x; cat $V/\(name)/x", "x\n", as: user.account)
    }
    #expect(try owners() == [anna.account.uid, ben.account.uid])
    // Of a user who hides no other process is looked at.
    let user = try sleeperOfRoot(
      in: fixture.run.mounted.path("Volumes/Bens"), reachedBy: ben.account)
    defer { kill(user, SIGKILL) }
    for user in [anna, ben] { try user.hide() }
    try fixture.expect("volume lock Annas --user \(anna.account.name)", "", as: RunFixture.root)
    #expect(try owners() == [ben.account.uid])
    for (account, option) in [(RunFixture.root, " --user \(ben.account.name)"), (ben.account, "")] {
      try fixture.refuse(
        "volume lock Bens\(option)", "Bens is in use: pid \(user) (sleep): working directory", .busy,
        as: account)
    }
    try end(user)
    try fixture.expect("volume lock --all; ls $V", "", as: ben.account)
    #expect(try owners() == [])
    for user in [anna, ben] { user.expectToHide() }
    for user in [anna, ben] { try user.end() }
  }

  /// A home is removed although its own user hides, and another one; both are named.
  ///
  /// The homes lie in the store, or elsewhere.
  @Test(arguments: [false, true]) func homesAreRemovedBesideProcessesThatHide(elsewhere: Bool) throws {
    let mounted = try MountedStore.mounted()
    let (anna, ben) = (try HidingProcesses(), try HidingProcesses())
    func home(_ user: HidingProcesses) -> String { mounted.path("Users/\(user.account.name)") }
    func remove(_ user: HidingProcesses) throws -> ProgramResult {
      try mounted.run(
        ["user", "remove", user.account.name, "--delete-home", "--store", mounted.store],
        before: Self.limited)
    }
    for user in [anna, ben] {
      let name = user.account.name
      if elsewhere { try mounted.temporary.makeDirectory("homes-\(name)", mode: 0o700) }
      let place = elsewhere ? ["--home", mounted.temporary.appending("homes-\(name)")] : []
      let added = try mounted.run(["user", "add", name, "--store", mounted.store] + place)
      try #require(added.status == 0, "\(added)")
      let written = try Program.run([
        "setpriv", "--reuid=\(user.account.uid)", "--regid=\(user.account.gid)", "--clear-groups", "sh", "-c",
        "echo mine >'\(home(user))/Documents/a'",
      ])
      try #require(written.status == 0, "\(written)")
    }
    let user = try sleeper(in: home(ben) + "/Documents", as: ben.account)
    defer { kill(user, SIGKILL) }
    for user in [anna, ben] { try user.hide() }
    let removed = try remove(anna)
    #expect(removed.status == 0, "\(removed)")
    // Twenty are named; on a busy machine others have had no turn, and come first.
    let isCut = removed.errors.split(separator: "\n").count >= 20
    for pid in anna.pids + ben.pids where !isCut {
      #expect(removed.errors.contains(Self.words(ofHidden: pid) + ", and may use the home"), "\(removed)")
    }
    #expect(access(home(anna), F_OK) == -1 && FD.text(of: home(ben) + "/Documents/a", limit: 16) == "mine\n")
    let refused = try remove(ben)
    #expect(refused.ending == .busy && refused.errors.contains("nothing was removed"), "\(refused)")
    #expect(refused.errors.contains("pid \(user) (sleep): working directory"), "\(refused)")
    #expect(FD.text(of: home(ben) + "/Documents/a", limit: 16) == "mine\n")
    try end(user)
    let last = try remove(ben)
    #expect(last.status == 0 && access(home(ben), F_OK) == -1, "\(last)")
    for user in [anna, ben] { user.expectToHide() }
    for user in [anna, ben] { try user.end() }
  }
}
