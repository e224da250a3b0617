// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// A later version has changed the list of apps while a daemon serves the store: the next worker can't read
/// it, and the mount stays.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 120))
struct NewerRegistryTests {
  private func set(_ version: Int, _ fixture: RunFixture) throws {
    let file = fixture.mounted.store + "/state/insula.db"
    let set = try Program.run(["sqlite3", file, "PRAGMA user_version=\(version); PRAGMA user_version"])
    try #require(set.output == "\(version)\n", "\(set)")
  }

  private func version(_ fixture: RunFixture) throws -> Int {
    let file = fixture.mounted.store + "/state/insula.db"
    let read = try Program.run(["sqlite3", file, "PRAGMA user_version"])
    return try #require(Int(read.output.filter(\.isNumber)), "\(read)")
  }

  /// Whether 'insula status' and 'insula doctor' say that there are no apps, and how they come back.
  private func saysThatAppsAreUnknown(_ mounted: MountedStore) throws -> [Bool] {
    let status = try mounted.run("status", mounted.store)
    let doctor = try mounted.run("doctor", mounted.store)
    try #require(status.status == 0, "\(status)")
    return [status, doctor].map { said in
      said.output.contains("served without apps") && said.output.contains("insula restart \(mounted.store)'")
    }
  }

  @Test(
    arguments: [(false, [], nil), (false, ["--case-insensitive"], "nopassthrough"), (true, [], nil)]
      as [(Bool, [String], String?)])
  func filesAreServedWithoutApps(rootless: Bool, initOptions: [String], options: String?) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let fixture = try RunFixture(rootless: rootless, initOptions: initOptions, options: options)
    let mounted = fixture.mounted
    let known = try version(fixture)
    let home = mounted.path("Users/\(fixture.user.name)")
    // The user has an app of their own beside everyone's, and a file that is no app.
    let bundle = mounted.temporary.appending("store/Notes-made/Notes.app")
    try fixture.succeed("install", bundle, "--user", fixture.user.name, "--store", mounted.store)
    let made = try fixture.shell(
      "cd '\(home)' && echo before > Documents/file && echo loose > Applications/loose")
    try #require(made.status == 0, "\(made)")
    // A program that uses the mount all the time.
    let user = try Client(uid: fixture.user.uid, gid: fixture.user.gid)
    try #require(try user.errno("chdir", home + "/Documents") == 0)
    try set(99, fixture)
    for round in 1...2 {
      try mounted.replaceWorker(byRestart: false)
      #expect(try saysThatAppsAreUnknown(mounted) == [true, true])
      let files = try fixture.shell(
        """
        cd '\(home)'; cat Documents/file Applications/loose
        echo \(round) > Documents/new && cat Documents/new
        """)
      #expect(files.status == 0 && files.output == "before\nloose\n\(round)\n", "\(files)")
      // Nothing that may be an app is read, changed or added.
      let sealed = try fixture.shell(
        """
        export LC_ALL=C
        for bundle in "$BUNDLE" '\(home)/Applications/Notes.app'; do
          cat "$bundle/Contents/Info.plist" 2>&1 | grep -c 'Input/output error'
          chmod 700 "$bundle/Contents" 2>&1 | grep -c 'Read-only file system'
        done
        mkdir '\(home)/Applications/New.app' 2>&1 | grep -c 'Read-only file system'
        """)
      #expect(sealed.output == "1\n1\n1\n1\n1\n", "\(sealed)")
      for verb in ["apps", "run", "uninstall"] {
        let app = verb == "apps" ? [] : [RunFixture.identifier]
        let refused = try mounted.run([verb, "--store", mounted.store] + app)
        #expect(refused.status == 5 && refused.errors.contains("has version 99"), "\(verb): \(refused)")
        #expect(refused.errors.contains("'insula restart' brings them back"), "\(refused)")
      }
      // Nor does the same program take over once more, which would not know it either.
      let restart = try mounted.run("restart", mounted.store)
      #expect(restart.status == 1 && restart.errors.contains("can't take over"), "\(restart)")
    }
    #expect(try version(fixture) == 99)
    try set(known, fixture)
    // Whose list is in order again: that alone changes nothing, and a restart does.
    #expect(try saysThatAppsAreUnknown(mounted) == [true, true])
    try mounted.replaceWorker(byRestart: true)
    #expect(try saysThatAppsAreUnknown(mounted) == [false, false])
    #expect(try user.errno("mkdir", "made", "448") == 0)
    let again = try fixture.shell(
      """
      run cat '\(home)/Applications/Notes.app/Contents/Info.plist' | grep -c '>\(RunFixture.identifier)<'
      grep -c '>\(RunFixture.identifier)<' "$BUNDLE/Contents/Info.plist"
      cat '\(home)/Documents/new'
      """)
    #expect(again.output == "1\n1\n2\n", "\(again)")
    let writing = try fixture.shell(
      "mkdir '\(home)/Applications/New' && rmdir '\(home)/Applications/New'")
    #expect(writing.status == 0, "\(writing)")
  }

  /// The same where the list was damaged, until it is restored from a backup.
  @Test(arguments: [false, true]) func filesAreServedBesideADamagedList(rootless: Bool) throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let fixture = try RunFixture(rootless: rootless)
    let mounted = fixture.mounted
    let (file, backup) = (mounted.store + "/state/insula.db", mounted.temporary.appending("backup.db"))
    let damage = "cp '\(file)' '\(backup)' && echo no database | dd of='\(file)' conv=notrunc status=none"
    try #require(try Program.run(["sh", "-c", damage]).status == 0)
    for _ in 0..<2 {
      try mounted.replaceWorker(byRestart: false)
      #expect(try fixture.shell("echo x > \"$POINT/Users/\(fixture.user.name)/Documents/x\"").status == 0)
      let refused = try mounted.run("apps", "--store", mounted.store)
      #expect(refused.status == 4 && refused.errors.contains("is damaged"), "\(refused)")
    }
    #expect(try saysThatAppsAreUnknown(mounted) == [true, true])
    // While it is damaged, a restart changes nothing either.
    try mounted.replaceWorker(byRestart: true)
    #expect(try saysThatAppsAreUnknown(mounted) == [true, true])
    try #require(try Program.run(["sh", "-c", "cat '\(backup)' > '\(file)'"]).status == 0)
    try mounted.replaceWorker(byRestart: true)
    #expect(try saysThatAppsAreUnknown(mounted) == [false, false])
    #expect(try fixture.shell("run true").status == 0)
    // One who mounts it is told at once.
    #expect(try mounted.unmount().status == 0)
    try #require(try Program.run(["sh", "-c", damage]).status == 0)
    #expect(try mounted.run("mount", mounted.store, mounted.point).status == 4)
  }

  /// What only looks leaves the list of an earlier version as it is, which another daemon may serve.
  @Test(arguments: [false, true]) func commandsThatLookChangeNothing(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let mounted = fixture.mounted
    let known = try version(fixture)
    let file = mounted.store + "/state/insula.db"
    let earlier = """
      DROP INDEX grants_in_ejected_homes; ALTER TABLE grants DROP COLUMN ejected;
      DROP TABLE adoptions; DROP TABLE former_roots; DROP TABLE holders; DROP TABLE home_owners;
      ALTER TABLE removed DROP COLUMN home_inode; ALTER TABLE removed DROP COLUMN home_handle;
      ALTER TABLE removed DROP COLUMN home_created;
      DELETE FROM migrations WHERE version > 15;
      PRAGMA user_version = 15
      """
    try #require(try Program.run(["sqlite3", file, earlier]).status == 0)
    let before = try Program.run(["sha256sum", file]).output
    for words in [
      ["check", mounted.store], ["check", "--deep", mounted.store],
      ["system", "verify", "--store", mounted.store], ["system", "info", "--store", mounted.store],
      ["trust", "list", "--store", mounted.store], ["status", mounted.store],
    ] {
      let result = try mounted.run(words)
      #expect(result.status == 0, "\(words): \(result)")
    }
    #expect(try version(fixture) == 15)
    #expect(try Program.run(["sha256sum", file]).output == before)
    guard KernelRelease.own >= KernelRelease(6, 9) else { return }
    // A worker has the store alone.
    try mounted.replaceWorker(byRestart: false)
    #expect(try version(fixture) == known)
    #expect(try fixture.shell("run true").status == 0)
  }
}
