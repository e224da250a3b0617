// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// With passthrough, splice(2) holds the lock of a file of the mount while it waits for a pipe: removing that
/// file, and with it all renames, wait for what may never come.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 240))
struct PipeHolderTests {
  private let fixture: TwoHolders
  private var run: RunFixture { fixture.run }
  private var other: TemporaryAccount { fixture.other }

  init() throws { fixture = try TwoHolders() }

  /// A directory that a user has in the tree, with two others in it.
  private func directory(of user: Account) throws -> String {
    let path = run.mounted.path("Users/\(user.name)/Documents/own")
    let made = try run.shell("mkdir -p '\(path)/one' '\(path)/two' && echo file >'\(path)/one/f'", as: user)
    try #require(made.ending == .ok, "\(made)")
    return path
  }

  /// Whether a program waits for a lock of the kernel's.
  private func isStuck(_ program: LockHolding.Background) -> Bool {
    ProcessID.field("State", of: "\(program.process.processIdentifier)")?.hasPrefix("D") == true
  }

  /// Runs a command, and tells how many seconds it took.
  private func time(_ command: String, as user: Account) throws -> Double {
    let begin = monotonicNanoseconds()
    let result = try run.shell("timeout 60 \(command)", as: user)
    #expect(result.ending == .ok, "\(command): \(result)")
    return Double(monotonicNanoseconds() - begin) / 1e9
  }

  /// Has the user begin with what waits for a lock, and the other one with what waits behind that: it is done
  /// as soon as the lock is free.
  private func letOthersWait(for words: [String], _ command: String) throws {
    let temporary = run.mounted.temporary
    let waiting = try LockHolding.Background(
      words, as: run.user, output: temporary.appending("waiting"), temporary)
    #expect(eventually { isStuck(waiting) })
    let seconds = try time(command, as: other.account)
    #expect(seconds > 1.5 && seconds < 40)
    try waiting.end()
  }

  /// A rename that waits for such a file has all renames of the tree wait.
  ///
  /// The program is paused, and loses nothing; another one that waits so is nobody's concern.
  @Test func othersRenamesGoOn() throws {
    guard try fixture.passesThrough() else { return }
    let directories = try [run.user, other.account].map(directory)
    let temporary = run.mounted.temporary
    let bystander = try LockHolding.holdByPipe(
      [directories[1] + "/slow"], as: other.account, temporary, called: "bystander")
    let holder = try LockHolding.holdByPipe(
      [directories[0] + "/held"], as: run.user, temporary, called: "held")
    try letOthersWait(
      for: ["mv", "-f", directories[0] + "/one/f", directories[0] + "/held"],
      "mv '\(directories[1])/one/f' '\(directories[1])/two/f'")
    #expect(holder.process.isRunning && bystander.process.isRunning)
    #expect(eventually { run.mounted.daemonLog?.contains("\(run.user.name)'s process") == true })
    let log = try #require(run.mounted.daemonLog)
    #expect(log.components(separatedBy: "\(run.user.name)'s process").count == 2, "\(log)")
    #expect(!log.contains("\(other.account.name)'s process"), "\(log)")
    try holder.end()
    try bystander.end()
    #expect(holder.process.terminationStatus == 0 && bystander.process.terminationStatus == 0)
    #expect(FD.text(of: directories[1] + "/slow", limit: 99) == "late")
    #expect(FD.text(of: directories[0] + "/held", limit: 99) == "file\n")
    // What they open now holds nobody up, and is written all the same.
    let again = try LockHolding.holdByPipe(
      [directories[0] + "/again"], as: run.user, temporary, called: "again")
    #expect(try time("ln '\(directories[0])/again' '\(directories[0])/two/again'", as: run.user) < 1.5)
    #expect(try time("rm '\(directories[0])/again'", as: run.user) < 1.5)
    try again.end()
    #expect(FD.text(of: directories[0] + "/two/again", limit: 99) == "late")
    #expect(run.mounted.daemonLog == log)
  }

  /// Removing such a file in a directory of all users has that directory wait; whoever does that again, with
  /// a file that was open before, loses the process.
  @Test func whoDoesItAgainLosesTheProcess() throws {
    guard try fixture.passesThrough() else { return }
    let shared = run.mounted.path("Users/Shared")
    let temporary = run.mounted.temporary
    let holder = try LockHolding.holdByPipe(
      [shared + "/held", shared + "/late"], as: run.user, temporary, called: "held")
    for (name, isAgain) in [("held", false), ("late", true)] {
      if isAgain {
        try #require(FileManager.default.createFile(atPath: "\(shared)/go", contents: nil))
        try #require(eventually { pipesOf(holder) == 2 })
      }
      try letOthersWait(for: ["rm", "-f", "\(shared)/\(name)"], "touch '\(shared)/new-\(name)'")
      if !isAgain { #expect(holder.process.isRunning) }
    }
    try #require(holder.hasEnded(), "\(run.mounted.daemonLog ?? "")")
    #expect(holder.process.terminationReason == .uncaughtSignal)
    #expect(eventually { run.mounted.daemonLog?.contains("is ended") == true })
  }

  /// How many threads of a process wait for pipes.
  private func pipesOf(_ holder: LockHolding.Background) -> Int {
    let tasks = "/proc/\(holder.process.processIdentifier)/task"
    return ProcessID.numbers(in: tasks).count {
      FD.text(of: "\(tasks)/\($0)/wchan", limit: 99) == "pipe_wait_readable"
    }
  }

  /// A file that is written from memory which never comes: no thread of the daemon waits for its lock.
  @Test func whoWritesFromSilentMemoryIsEnded() throws {
    guard try fixture.passesThrough() else { return }
    let directories = try [run.user, other.account].map(directory)
    let temporary = run.mounted.temporary
    let holder = try LockHolding.hold([directories[0] + "/held"], as: run.user, temporary)
    try letOthersWait(
      for: ["mv", "-f", directories[0] + "/one/f", directories[0] + "/held"],
      "mv '\(directories[1])/one/f' '\(directories[1])/two/f'")
    try holder.end()
    #expect(eventually { run.mounted.daemonLog?.contains("\(run.user.name)'s process") == true })
  }
}
