// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What users have granted, while one of them holds a file on the way.
extension HeldLockTests {
  private func rename(_ old: String, to new: String, called name: String) throws -> Background {
    try Background(
      ["mv", "-f", old, new], as: run.user, output: run.mounted.temporary.appending(name),
      run.mounted.temporary)
  }

  private func waitsForRename(_ worker: Int32) -> Bool {
    ["vfs_rename", "lock_two_nondirectories"].contains { waits(worker, in: $0) }
  }

  private func isDone(_ background: Background) -> Bool { eventually { !background.process.isRunning } }

  /// The other user was granted the file that the user holds and renames another one to.
  @Test func aRenameThatWaitsKeepsNobodyWhoWasGrantedTheFile() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else { return print("skipped: nothing is passed through") }
    let shared = run.mounted.path("Users/Shared/d")
    let letter = "\(run.mounted.path("Users/\(other.account.name)"))/Documents/letter"
    let made = try run.shell(
      "mkdir '\(shared)' && cd '\(shared)' && head -c 8192 /dev/zero >f && echo new >o && chmod 666 f o")
    try #require(made.ending == .ok, "\(made)")
    let notes = "--store \"$POINT\" org.example.notes"
    let given = try run.shell(
      "echo dear >'\(letter)' && \"$INSULA\" grant \(notes) '\(shared)/f'", as: other.account)
    try #require(given.ending == .ok, "\(given)")
    let holder = try hold(["read:\(shared)/f"])
    let worker = try #require(try run.mounted.daemon())
    let waiting = try rename("\(shared)/o", to: "\(shared)/f", called: "renamed")
    #expect(eventually { waitsForRename(worker) })
    let after = try run.shell(
      """
      timeout 20 "$INSULA" run \(notes) -- echo begun &&
      timeout 20 "$INSULA" grant \(notes) '\(letter)' >&2 &&
      timeout 20 "$INSULA" run \(notes) -- cat '\(letter)' &&
      timeout 20 "$INSULA" revoke \(notes) '\(letter)' >&2 &&
      ! timeout 20 "$INSULA" run \(notes) -- cat '\(letter)'
      """, as: other.account)
    #expect(after.ending == .ok && after.output == "begun\ndear\n", "\(after)")
    #expect(waitsForRename(worker))
    try holder.end()
    try waiting.end()
    // The grant is for what has the name by now.
    let found = try run.shell("\"$INSULA\" run \(notes) -- cat '\(shared)/f'", as: other.account)
    #expect(found.output == "new\n", "\(found)")
  }

  /// A directory that is waited for has come to where a grant leads; then the user renames something in a
  /// directory that everybody needs, and the worker dies.
  @Test(arguments: [false, true]) func aLookThatWaitsKeepsNobody(revoking: Bool) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else { return print("skipped: nothing is passed through") }
    let own = run.mounted.path("Users/\(run.user.name)/Documents")
    let shared = run.mounted.path("Users/Shared")
    let notes = "--store \"$POINT\" org.example.notes"
    let letter = "\(run.mounted.path("Users/\(other.account.name)"))/Documents/letter"
    let theirs = try run.shell(
      "echo dear >'\(letter)' && \"$INSULA\" grant \(notes) '\(letter)'", as: other.account)
    try #require(theirs.ending == .ok, "\(theirs)")
    let made = try run.shell(
      """
      cd '\(own)' && mkdir -p Q/D Z/D '\(shared)/x' && echo y >Q/D/y && echo ours >'\(shared)/x/g' &&
      head -c 8192 /dev/zero >Z/D/held && echo new >Z/D/new &&
      "$INSULA" grant \(notes) "$PWD/Q/D/y" && "$INSULA" grant \(notes) '\(shared)/x/g' && rm -r Q
      """)
    try #require(made.ending == .ok, "\(made)")
    let holder = try hold(["read:\(own)/Z/D/held"])
    let worker = try #require(try run.mounted.daemon())
    let waiting = try rename("\(own)/Z/D/new", to: "\(own)/Z/D/held", called: "one")
    #expect(eventually { waitsForRename(worker) })
    let moved = try rename("\(own)/Z", to: "\(own)/Q", called: "two")
    #expect(isDone(moved))
    let renamed = try rename("\(shared)/x", to: "\(shared)/z", called: "three")
    #expect(isDone(renamed))
    let look = "ls >/dev/null; ! stat none 2>/dev/null && mkdir"
    for (account, name) in [(other.account, "theirs"), (RunFixture.root, "root")] {
      let found = try run.shell("cd '\(shared)' && timeout 20 sh -c '\(look) \(name)'", as: account)
      #expect(found.ending == .ok, "\(name): \(found)")
    }
    let followed = try run.shell("timeout 20 \"$INSULA\" run \(notes) -- cat '\(shared)/z/g'")
    #expect(followed.output == "ours\n", "\(followed)")
    #expect(waitsForRename(worker))
    #expect(kill(worker, SIGKILL) == 0)
    let served = try run.shell(
      "timeout 20 ls '\(shared)' && timeout 20 \"$INSULA\" run \(notes) -- cat '\(letter)'",
      as: other.account)
    #expect(served.ending == .ok && served.output.hasSuffix("dear\n"), "\(served)")
    #expect(try run.mounted.daemon().map { $0 != worker } == true)
    #expect(run.mounted.daemonLog?.contains("is not all found yet") == true)
    // What is not found yet can be taken back, and does not come then. The answer waits, as it says paths.
    if revoking { _ = try run.shell("timeout 10 \"$INSULA\" revoke \(notes) --all") }
    try holder.end()
    for background in [waiting, moved, renamed] { try background.end() }
    let read = "\"$INSULA\" run \(notes) -- cat '\(shared)/z/g'"
    if !revoking { #expect(eventually { (try? run.shell(read).output) == "ours\n" }) }
    let left = try run.shell("\"$INSULA\" grants --store \"$POINT\"")
    for name in ["Shared/z/g", "Q/D/y"] { #expect(left.output.contains(name) == !revoking, "\(left)") }
  }
}
