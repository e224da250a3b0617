// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A process that holds the lock of a backing file in the kernel is ended when others wait for that, and its
/// user can't do it again for a while.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 240))
struct LockHolderTests {
  private let fixture: TwoHolders
  private var run: RunFixture { fixture.run }
  private var other: TemporaryAccount { fixture.other }

  init() throws { fixture = try TwoHolders() }

  /// A directory that a user has in the tree, with a file called "held" and one called "late".
  private func directory(of user: Account) throws -> String {
    let path = run.mounted.path("Users/\(user.name)/Documents/own")
    let made = try run.shell(
      "mkdir '\(path)' && cd '\(path)' && echo 1 >held && echo 2 >late && echo 3 >later", as: user)
    try #require(made.ending == .ok, "\(made)")
    return path
  }

  private func remove(_ path: String, as user: Account) throws -> (result: ProgramResult, seconds: Double) {
    let begin = monotonicNanoseconds()
    let result = try run.shell("timeout 60 rm -f '\(path)'", as: user)
    return (result, Double(monotonicNanoseconds() - begin) / 1e9)
  }

  /// Two users do it; each loses the process, and the passthrough, that did.
  ///
  /// The second time nothing waits: no lock is held by memory of theirs.
  @Test(arguments: [false, true]) func holdersAreEnded(isSynchronous: Bool) throws {
    guard try fixture.passesThrough() else { return }
    let users = [run.user, other.account]
    let directories = try users.map(directory)
    var holders: [LockHolding.Background] = []
    for (user, directory) in zip(users, directories) {
      let holder = try LockHolding.hold(
        ["read:\(directory)/held"], as: user, run.mounted.temporary, called: user.name,
        isSynchronous: isSynchronous)
      holders.append(holder)
    }
    for (user, directory) in zip(users, directories) {
      let removed = try remove("\(directory)/held", as: user)
      #expect(removed.result.ending == .ok, "\(removed)")
      #expect(removed.seconds < 40)
      // It did wait: where nothing is held this takes no time.
      if user.uid == users[0].uid { #expect(removed.seconds > 1.5, "\(removed)") }
    }
    let log = try #require(run.mounted.daemonLog)
    for user in users {
      #expect(log.components(separatedBy: "\(user.name)'s process").count == 2, "\(log)")
    }
    #expect(log.contains("ending a filesystem of user") == isSynchronous, "\(log)")
    for holder in holders { try holder.end() }
    for (user, directory) in zip(users, directories) {
      let holder = try LockHolding.hold(
        ["read:\(directory)/late"], as: user, run.mounted.temporary, called: user.name,
        isSynchronous: isSynchronous)
      let removed = try remove("\(directory)/late", as: user)
      #expect(removed.result.ending == .ok && removed.seconds < 1.5, "\(removed)")
      try holder.end()
    }
    #expect(run.mounted.daemonLog == log)
  }

  /// What they read and write afterwards is what others do, whoever has the file open.
  @Test func holdersReadAndWriteAsBefore() throws {
    guard try fixture.passesThrough() else { return }
    let shared = run.mounted.path("Users/Shared/both")
    let made = try run.shell("echo first >'\(shared)' && chmod 666 '\(shared)'", as: other.account)
    try #require(made.ending == .ok, "\(made)")
    let directory = try directory(of: run.user)
    let holder = try LockHolding.hold(["read:\(directory)/held"], as: run.user, run.mounted.temporary)
    try #require(try remove("\(directory)/held", as: run.user).result.ending == .ok)
    try holder.end()
    let other = try LockHolding.Background(
      ["sh", "-c", "exec 3<>'\(shared)' && echo open && read line && cat <&3"], as: other.account,
      output: run.mounted.temporary.appending("read"), run.mounted.temporary)
    let output = run.mounted.temporary.appending("read")
    #expect(eventually { FD.text(of: output, limit: 100) == "open\n" })
    let script = """
      cat '\(shared)' && echo second >>'\(shared)' && dd if='\(shared)' iflag=direct status=none &&
      python3 -c 'import mmap, sys; f = open(sys.argv[1], "r+b"); m = mmap.mmap(f.fileno(), 0)
      m[0:5] = b"third"; m.flush()' '\(shared)' && cat '\(shared)'
      """
    let used = try run.shell(script)
    #expect(used.output == "first\nfirst\nsecond\nthird\nsecond\n", "\(used)")
    try other.end()
    #expect(FD.text(of: output, limit: 100) == "open\n")
    let seen = try run.shell("cat '\(shared)'", as: self.other.account)
    #expect(seen.output == "third\nsecond\n", "\(seen)")
  }

  /// A file that was open before is still passed through: whoever uses that loses all processes.
  @Test func whoDoesItAgainLosesAllProcesses() throws {
    guard try fixture.passesThrough() else { return }
    let directory = try directory(of: run.user)
    let temporary = run.mounted.temporary
    let bystander = try LockHolding.Background(
      ["sleep", "300"], as: run.user, output: temporary.appending("bystander"), temporary)
    let stranger = try LockHolding.Background(
      ["sleep", "300"], as: other.account, output: temporary.appending("stranger"), temporary)
    let holder = try LockHolding.hold(
      ["read:\(directory)/held", "late:\(directory)/late", "later:\(directory)/later"], as: run.user,
      temporary)
    #expect(try remove("\(directory)/held", as: run.user).result.ending == .ok)
    #expect(bystander.process.isRunning && holder.process.isRunning)
    try #require(FileManager.default.createFile(atPath: "\(directory)/go", contents: nil))
    // Whoever it is that waits for the lock.
    let removed = try run.shell("sleep 2; time timeout 60 rm '\(directory)/late'", as: RunFixture.root)
    #expect(removed.ending == .ok, "\(removed)")
    #expect(bystander.process.isRunning && holder.process.isRunning)
    try #require(FileManager.default.createFile(atPath: "\(directory)/gone", contents: nil))
    let last = try run.shell("sleep 2; time timeout 60 rm '\(directory)/later'", as: RunFixture.root)
    #expect(last.ending == .ok, "\(last)")
    #expect(
      eventually { !bystander.process.isRunning && !holder.process.isRunning },
      "\(removed), \(run.mounted.daemonLog ?? "")")
    #expect(stranger.process.isRunning)
    kill(stranger.process.processIdentifier, SIGKILL)
    stranger.process.waitUntilExit()
    #expect(run.mounted.daemonLog?.contains("the third time") == true)
  }

  /// Root's own are named, and left alone.
  @Test func rootsHolderIsNamed() throws {
    guard try fixture.passesThrough() else { return }
    let directory = try directory(of: run.user)
    let holder = try LockHolding.hold(
      ["read:\(directory)/held"], as: RunFixture.root, run.mounted.temporary)
    let removal = try LockHolding.Background(
      ["rm", "\(directory)/held"], as: run.user, output: run.mounted.temporary.appending("removed"),
      run.mounted.temporary)
    #expect(eventually { run.mounted.daemonLog?.contains("root's process") == true })
    #expect(removal.process.isRunning && holder.process.isRunning)
    try holder.end()
    #expect(eventually { !removal.process.isRunning })
    try removal.end()
  }

  /// A program whose memory is slow is in nobody's way for long, whoever makes the daemon look.
  @Test func slowMemoryIsLeftAlone() throws {
    guard try fixture.passesThrough() else { return }
    let directories = try [run.user, other.account].map(directory)
    let temporary = run.mounted.temporary
    let slow = try LockHolding.hold(
      ["read:\(directories[1])/held"], as: other.account, temporary, called: "slow", isSlow: true)
    let holder = try LockHolding.hold(["read:\(directories[0])/held"], as: run.user, temporary)
    let removed = try remove("\(directories[0])/held", as: run.user)
    #expect(removed.result.ending == .ok && removed.seconds > 1.5, "\(removed)")
    #expect(eventually { run.mounted.daemonLog?.contains("\(run.user.name)'s process") == true })
    #expect(slow.process.isRunning)
    #expect(run.mounted.daemonLog?.contains(other.account.name) == false, "\(run.mounted.daemonLog ?? "")")
    try slow.end()
    try holder.end()
  }
}
