// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A user who holds the kernel's locks of files, by writes that never end, holds up nobody else: neither by
/// what waits for those locks, nor when the worker dies by whose threads they are waited for.
///
/// A file's lock in one view of the tree is another one than in another view or beside the tree.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 240))
struct HeldLockTests {
  enum Place: CaseIterable { case volume, home }
  enum Change: String, CaseIterable {
    case mode = "chmod 604"
    case name = "rm"
  }
  /// More than there are threads for all.
  private static let count = 24

  let run: RunFixture
  let other: TemporaryAccount

  init() throws {
    run = try RunFixture(before: { _ in LockHolding.left })
    other = try TemporaryAccount()
    try run.succeed("user", "add", other.account.name, "--store", run.mounted.store)
  }

  /// A directory of the user's, by a path beside the one through the whole tree, and by that one.
  func directory(_ place: Place) throws -> (held: String, inTree: String) {
    let temporary = run.mounted.temporary
    try temporary.makeDirectory("own", mode: 0o755)
    let own = temporary.appending("own")
    try #require(chown(own, run.user.uid, run.user.gid) == 0)
    switch place {
    case .volume:
      let added = try run.shell("\"$INSULA\" volume add --store \"$POINT\" \(own) --at held")
      try #require(added.ending == .ok, "\(added)")
      return (own, run.mounted.path("Volumes/held"))
    case .home:
      let mounted = try run.shell("\"$INSULA\" mount --files \"$POINT\" \(own)")
      try #require(mounted.ending == .ok, "\(mounted)")
      return (own + "/Documents", run.mounted.path("Users/\(run.user.name)/Documents"))
    }
  }

  typealias Background = LockHolding.Background

  func hold(_ files: [String]) throws -> Background {
    try LockHolding.hold(files, as: run.user, run.mounted.temporary)
  }

  /// Somebody else looks, and makes something.
  func othersAreServed(_ step: String) throws {
    let home = run.mounted.path("Users/\(other.account.name)")
    let served = try run.shell(
      "timeout 20 sh -c 'ls $POINT/Users && mkdir \(home)/\(step)'", as: other.account)
    #expect(served.ending == .ok, "\(step): \(served)")
  }

  @Test(arguments: Place.allCases, Change.allCases) func nobodyElseWaits(place: Place, change: Change) throws
  {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let directory = try directory(place)
    let names = (0..<Self.count).map { "g\($0)" }
    let holder = try hold(names.map { "\(directory.held)/\($0)" })
    let worker = try #require(try run.mounted.daemon())
    let script = "cd '\(directory.inTree)' && for f in g*; do \(change.rawValue) $f & done; wait"
    let changes = try Background(
      ["sh", "-c", script], as: run.user, output: run.mounted.temporary.appending("changed"),
      run.mounted.temporary)
    // Those that take names away wait for each other in the kernel as well: their directory has one lock.
    let wait = change == .mode ? "chmod_common" : "vfs_unlink"
    #expect(eventually { waits(worker, in: wait) })
    try othersAreServed("before")
    #expect(kill(worker, SIGKILL) == 0)
    try othersAreServed("after")
    #expect(try run.mounted.daemon().map { $0 != worker } == true)
    try holder.end()
    try changes.end()
    let found = try run.shell("cd '\(directory.inTree)' && stat -c %a g* 2>&1 | sort | uniq -c")
    switch change {
    case .mode:
      #expect(found.output.trimmingCharacters(in: .whitespaces) == "\(Self.count) 604\n", "\(found)")
    case .name: #expect(found.output.contains("No such file"), "\(found)")
    }
    #expect(eventually { !waits(worker, in: wait) })
  }

  /// What the daemon takes away by itself may wait for such a lock as well.
  @Test func aDeletionThatWaitsKeepsNoWorker() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let made = try run.shell(
      "insula path $APP caches >/dev/null && cd \"$DATA/Library/Caches\" && mkdir own && echo \"$PWD/own\"")
    try #require(made.ending == .ok, "\(made)")
    // A program serves it, which has nothing to do with that.
    let image = run.mounted.temporary.appending("disk.img")
    let disk = try run.shell(
      "truncate -s 8M \(image) && mkfs.ext4 -qF -E root_owner \(image)"
        + " && \"$INSULA\" volume add --store \"$POINT\" --engine program \(image)", as: RunFixture.root)
    try #require(disk.ending == .ok, "\(disk)")
    let caches = made.output.trimmingCharacters(in: .newlines)
    let holder = try hold(["\(caches)/g0"])
    let worker = try #require(try run.mounted.daemon())
    let purge = try Background(
      [Program.insula, "purge", "org.example.notes", "--store", run.mounted.point], as: run.user,
      output: run.mounted.temporary.appending("purged"), run.mounted.temporary)
    #expect(eventually { waits(worker, in: "vfs_unlink") })
    try othersAreServed("before")
    #expect(kill(worker, SIGKILL) == 0)
    try othersAreServed("after")
    #expect(try run.mounted.daemon().map { $0 != worker } == true)
    try holder.end()
    try purge.end()
    #expect(eventually { access("\(caches)/g0", F_OK) != 0 })
    let log = try #require(run.mounted.daemonLog)
    #expect(!log.contains("ending what serves"), "\(log)")
  }

  /// What such a deletion has left is removed by the next worker, which waits for the same.
  @Test func whatADeletionLeavesKeepsNobodyFromChangingApps() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    try run.mounted.temporary.makeDirectory("made", mode: 0o755)
    let made = run.mounted.temporary.appending("made")
    try run.succeed("new-app", "Own", made)
    try run.succeed("sign", "\(made)/Own.app", "--identity", "tester")
    try #require(Program.run(["chmod", "-R", "a+rX", made]).status == 0)
    let installed = try run.shell("insula install \(made)/Own.app")
    try #require(installed.ending == .ok, "\(installed)")
    let bundle = run.mounted.path("Users/\(run.user.name)/Applications/Own.app")
    let holder = try hold(["read:\(bundle)/Contents/Info.plist"])
    let worker = try #require(try run.mounted.daemon())
    let removal = try Background(
      [Program.insula, "uninstall", "org.example.own", "--store", run.mounted.point], as: run.user,
      output: run.mounted.temporary.appending("uninstalled"), run.mounted.temporary)
    #expect(eventually { waits(worker, in: "vfs_unlink") })
    #expect(kill(worker, SIGKILL) == 0)
    try othersAreServed("after")
    let change = "timeout 60 sh -c '\"$INSULA\" install --store \"$POINT\" \(made)/Own.app"
    let uninstall = "\"$INSULA\" uninstall --store \"$POINT\" org.example.own'"
    let changed = try run.shell("\(change) && \(uninstall)", as: other.account)
    #expect(changed.ending == .ok, "\(changed)")
    #expect(eventually { run.mounted.daemonLog?.contains("is not removed yet") == true })
    let staging = run.mounted.temporary.appending("store/state/staging")
    try holder.end()
    try removal.end()
    #expect(eventually { (try? FileManager.default.contentsOfDirectory(atPath: staging)) == [] })
  }

  /// A rename whose caller was killed while it waited, and that is done then all the same.
  @Test func aLateRenameIsKnown() throws {
    let directory = try directory(.home)
    let holder = try hold(["held", "mode"].map { "\(directory.held)/\($0)" })
    let made = try run.shell(
      "cd '\(directory.inTree)' && mkdir other && echo new >other/new && cat other/new")
    try #require(made.output == "new\n", "\(made)")
    let worker = try #require(try run.mounted.daemon())
    let mode = try Background(
      ["sh", "-c", "chmod 604 '\(directory.inTree)/mode'"], as: run.user,
      output: run.mounted.temporary.appending("changed"), run.mounted.temporary)
    // From here on the user's requests have a queue, which answers those who are killed.
    #expect(eventually { run.mounted.daemonLog?.contains("served apart") == true })
    let rename = try Background(
      ["sh", "-c", "cd '\(directory.inTree)' && exec mv -f other/new held"], as: run.user,
      output: run.mounted.temporary.appending("renamed"), run.mounted.temporary)
    // Whichever of the two files has its lock taken first.
    let isWaiting = { ["vfs_rename", "lock_two_nondirectories"].contains { waits(worker, in: $0) } }
    #expect(eventually(isWaiting))
    #expect(kill(rename.process.processIdentifier, SIGKILL) == 0)
    // It ends before its rename does.
    try rename.end()
    #expect(isWaiting())
    try holder.end()
    try mode.end()
    let found = "cd '\(directory.inTree)' && ! stat other/new && cat held && ls other"
    #expect(eventually { (try? run.shell(found).output) == "new\n" })
  }

  /// What is renamed was granted: others grant and start apps meanwhile.
  @Test func aRenameThatWaitsKeepsNobodysGrants() throws {
    let directory = try directory(.home)
    let other = "\(run.mounted.path("Users/\(other.account.name)"))/Documents"
    let work = """
      timeout 20 "$INSULA" grant --store "$POINT" org.example.notes '\(other)/letter' &&
      timeout 20 "$INSULA" run --store "$POINT" org.example.notes -- cat '\(other)/letter'
      """
    let before = try run.shell("echo dear >'\(other)/letter'; \(work)", as: self.other.account)
    #expect(before.output.hasSuffix("dear\n"), "\(before)")
    let holder = try hold(["\(directory.held)/held"])
    let granted = try run.shell(
      """
      cd '\(directory.inTree)' && echo new >new &&
      "$INSULA" grant --store "$POINT" org.example.notes "$PWD/new"
      """)
    try #require(granted.ending == .ok, "\(granted)")
    let worker = try #require(try run.mounted.daemon())
    let rename = try Background(
      ["sh", "-c", "cd '\(directory.inTree)' && exec mv -f new held"], as: run.user,
      output: run.mounted.temporary.appending("renamed"), run.mounted.temporary)
    let isWaiting = { ["vfs_rename", "lock_two_nondirectories"].contains { waits(worker, in: $0) } }
    #expect(eventually(isWaiting))
    let after = try run.shell(work, as: self.other.account)
    #expect(after.output.hasSuffix("dear\n"), "\(after)")
    #expect(isWaiting())
    try holder.end()
    try rename.end()
    let found = try run.shell(
      "\"$INSULA\" run --store \"$POINT\" org.example.notes -- cat '\(directory.inTree)/held'")
    #expect(found.output == "new\n", "\(found)")
  }
}
