// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// `insula backup init`, `now`, `list`, `restore`, `forget` and `check`, by restic.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BackupEngineTests {
  /// Shows the lines that differ; each home has its own `.localized`, with its own time.
  private func expectSame(_ now: String, _ before: String, sourceLocation: SourceLocation = #_sourceLocation)
  {
    let (new, old) = (lines(now), lines(before))
    #expect(
      Set(new).subtracting(old).sorted() == Set(old).subtracting(new).sorted(), sourceLocation: sourceLocation
    )
    #expect(new.count == old.count, sourceLocation: sourceLocation)
  }

  private func lines(_ text: String) -> [String] {
    text.components(separatedBy: "\n").filter { !$0.hasPrefix(".localized ") }
  }

  @Test(arguments: [false, true])
  func restoredInAnotherStoreAllIsAsItWas(rootless: Bool) throws {
    let fixture = try BackupFixture(rootless: rootless)
    try fixture.fill()
    let before = try fixture.seen(at: fixture.run.mounted.point)
    #expect(
      before.contains("settings") && before.contains("com.apple.system.Security"), "\(before.prefix(2000))")
    let made = try fixture.succeed("init; backup now --store \"$POINT\"")
    #expect(made.contains("Backup "), "\(made)")
    #expect(try fixture.succeed("backup list").contains(fixture.run.mounted.point))
    #expect(try fixture.succeed("backup check").contains("are whole"))

    let (other, bundles) = try fixture.anotherStore()
    // Without the app its data are left out, and that is said.
    let without = try fixture.shell("backup restore --to '\(other.point)'")
    #expect(without.ending == .failed && without.errors.contains("--bundles"), "\(without)")
    let restored = try fixture.shell("backup restore --to '\(other.point)' --bundles '\(bundles)' --replace")
    #expect(restored.status == 0, "\(restored.output)\(restored.errors)")
    #expect(restored.output.contains("Installed Notes"))
    expectSame(try fixture.seen(at: other.point), before)
    let absent = try fixture.succeed(
      """
      cd '\(other.point)'/Users/$(id -un); ls Library; ls Library/Containers/$APP/Data/tmp \
        Library/Containers/$APP/Data/Library/Caches
      """)
    #expect(!absent.contains("gone") && !absent.contains("Caches\nContainers\n\nc"), "\(absent)")
    #expect(try other.run(["check", other.store]).status == 0 || rootless)
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.scratch).isEmpty)
  }

  @Test func whatIsThereIsReplacedWhenThatIsWanted() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    let before = try fixture.seen(at: fixture.run.mounted.point)
    _ = try fixture.succeed("init; backup now --store \"$POINT\"")
    _ = try fixture.succeed(
      """
      cd "$POINT/Users/$(id -un)"; echo other >Documents/Letter.txt; echo more >Documents/More.txt
      "$INSULA" acl -N $DATA/Documents/notes; echo other >$DATA/Documents/notes; echo new >$DATA/Documents/new
      """)
    let changed = try fixture.seen(at: fixture.run.mounted.point)
    let asked = try fixture.shell("backup restore --to \"$POINT\" </dev/null")
    #expect(asked.ending == .failed && asked.errors.contains("--replace"), "\(asked)")
    #expect(try fixture.seen(at: fixture.run.mounted.point) == changed)
    // What has flags stands against it, and is named; all else is there.
    _ = try fixture.succeed(
      "cd \"$POINT/Users/$(id -un)\"; \"$INSULA\" flags uchg,hidden Documents/Letter.txt")
    let refused = try fixture.shell("backup restore --to \"$POINT\" --replace")
    #expect(
      refused.status == 1 && refused.errors.contains("Documents/Letter.txt: what is there is protected"),
      "\(refused.errors)")
    _ = try fixture.succeed("cd \"$POINT/Users/$(id -un)\"; \"$INSULA\" flags nouchg Documents/Letter.txt")
    let again = try fixture.shell("backup restore --to \"$POINT\" --replace")
    #expect(again.status == 0, "\(again.output)\(again.errors)")
    _ = try fixture.succeed(
      "cd \"$POINT/Users/$(id -un)/Documents\"; grep -qx more More.txt; rm More.txt"
    )
    expectSame(try fixture.seen(at: fixture.run.mounted.point), before)
  }

  @Test func rootRestoresEachHomeAsItsOwner() throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    let user = fixture.run.user.name
    _ = try fixture.succeed(
      """
      cd "$POINT"; echo shared >Library/Fonts/shared
      chmod 640 Library/Fonts/shared; chown 0:12 Library/Fonts/shared
      cp /bin/true Users/Shared/program; chmod 4755 Users/Shared/program
      cp /bin/true Users/\(user)/Documents/program; chown \(user) Users/\(user)/Documents/program
      chmod 4755 Users/\(user)/Documents/program
      init; backup now --store "$POINT"
      echo other >Library/Fonts/shared; rm Users/Shared/program
      echo other >"Users/\(user)/Documents/odd [name]*?"
      """, as: RunFixture.root)
    let before = try fixture.seen(at: fixture.run.mounted.point)
    let restored = try fixture.shell("backup restore --to \"$POINT\" --replace", as: RunFixture.root)
    #expect(
      restored.status == 0 && restored.output.contains("with the data of 1 app"),
      "\(restored.output)\(restored.errors)")
    let now = try fixture.seen(at: fixture.run.mounted.point)
    #expect(now != before && now.contains("notes"))
    let seen = try fixture.succeed(
      """
      cd "$POINT"; cat Library/Fonts/shared Users/\(user)/Documents/odd*
      stat -c '%u:%g %a' Library/Fonts/shared
      cd Users/\(user)/Documents; stat -c '%U %a' program odd*
      """, as: RunFixture.root)
    #expect(seen == "shared\nodd\n0:12 640\n\(user) 755\n\(user) 644\n", "\(seen)")
    // One user alone, by root.
    let one = try fixture.shell(
      "backup restore --to \"$POINT\" --replace --user \(user)", as: RunFixture.root)
    #expect(one.status == 0 && !one.output.contains("all users share"), "\(one.output)\(one.errors)")
  }

  /// The attack: a user's own process takes over the one that root has restore their home, and holds it.
  ///
  /// It can do so in the moment before that refuses tracers; from then on no process of the user's can.
  @Test(arguments: ["look", "seize"]) func tracedRestoreEnds(deed: String) throws {
    let fixture = try BackupFixture()
    try fixture.fill()
    _ = try fixture.succeed("init; backup now --store \"$POINT\"", as: RunFixture.root)
    let attack = """
      import ctypes, os, sys, time
      libc = ctypes.CDLL(None, use_errno=True)
      told = set(); out = open(sys.argv[1], "w", buffering=1)
      def tell(word):
          if word not in told: out.write(word + "\\n")
          told.add(word)
      tell("ready")
      end = time.monotonic() + 60
      while time.monotonic() < end and not os.path.exists(sys.argv[1] + ".over"):
          for pid in filter(str.isdigit, os.listdir("/proc")):
              try:
                  words = open(f"/proc/{pid}/cmdline", "rb").read()
                  # With '--user' it is root's still.
                  if b"\\0restore\\0--from\\0" not in words or b"\\0--user\\0" in words: continue
                  status = open(f"/proc/{pid}/status").read()
                  if int(status.split("Uid:\\t")[1].split()[0]) != os.getuid(): continue
                  if os.stat(f"/proc/{pid}/environ").st_uid != os.getuid(): tell("refuses")
              except OSError: continue
              if sys.argv[2] == "look": continue
              if libc.ptrace(0x4206, int(pid), 0, 0) != 0: continue
              libc.ptrace(0x4207, int(pid), 0, 0)
              tell("seized")
              time.sleep(40)
      """
    let program = try fixture.run.mounted.temporary.write(attack, to: "attack.py")
    let user = fixture.run.user
    let result = try fixture.shell(
      """
      told=$(dirname "$REPOSITORY")/told
      export TMPDIR=$(mktemp -d /var/tmp/insula-test-XXXXXX); chmod 755 $TMPDIR
      setpriv --reuid=\(user.uid) --regid=\(user.gid) --clear-groups \\
        /usr/bin/python3 '\(program)' $told \(deed) & attacks=$!
      until [ -e $told ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.02; done
      timeout -s KILL 35 "$INSULA" backup restore --to "$POINT" --replace \\
        --repository "$REPOSITORY" --password-file "$PASSWORD"; echo "ended $?"
      ls "$TMPDIR"; rm -r "$TMPDIR"; touch $told.over; kill $attacks; wait $attacks 2>/dev/null; cat $told
      """, as: RunFixture.root)
    let isSeized = result.output.contains("seized")
    #expect(result.output.contains(isSeized ? "ended 1\n" : "ended 0\n"), "\(result)")
    #expect(!result.output.contains("insula-restore"), "nothing is left: \(result)")
    #expect(isSeized || result.output.contains("refuses"), "\(result)")
    #expect(result.errors.contains("has taken over the one that restores") == isSeized, "\(result)")
  }

  @Test func dataOfAppsThatRunStay() throws {
    let fixture = try BackupFixture()
    let seen = try fixture.shell(
      """
      echo old >$DATA/Documents/notes; init; backup now --store "$POINT"; echo new >$DATA/Documents/notes
      run sleep 60 & running 1
      backup restore --to "$POINT" --replace; echo $?; cat $DATA/Documents/notes
      insula kill $APP; wait; backup restore --to "$POINT" --replace; cat $DATA/Documents/notes
      """)
    #expect(
      seen.output.contains("\n1\nnew\n") && seen.output.hasSuffix("old\n"), "\(seen.output)\(seen.errors)")
    #expect(seen.errors.contains("the app is running; end it first"), "\(seen.errors)")
  }

  @Test func messagesSayWhatToDo() throws {
    let fixture = try BackupFixture()
    func refusal(_ script: String, _ said: String, status: Int32 = 1) throws {
      let result = try fixture.shell(script)
      #expect(
        result.status == status && result.errors.contains(said), "\(script): \(result.output)\(result.errors)"
      )
    }
    try refusal("backup now --store \"$POINT\"", "there is no repository at")
    _ = try fixture.succeed("init")
    try refusal("backup restore --to \"$POINT\"", "that was made on this machine for you")
    try refusal("backup restore abcd1234 --to \"$POINT\"", "there is no backup 'abcd1234'")
    try refusal(
      "echo wrong >$SCRATCH/wrong; PASSWORD=$SCRATCH/wrong; backup list", "the password is not that of")
    try refusal("PASSWORD=$SCRATCH/none; backup list", "'--password-file' names another file")
    try refusal(": >$SCRATCH/empty; PASSWORD=$SCRATCH/empty; backup list", "is empty; write it there")
    try refusal("REPOSITORY=$POINT/Users/Shared/r; backup now --store \"$POINT\"", "belongs on another disk")
    try refusal(
      "\"$INSULA\" backup list --repository \"$REPOSITORY\" </dev/null", "there is no terminal to ask",
      status: 2)
    try refusal("backup forget --keep sometimes=3", "is not what to keep", status: 2)
    try refusal("backup now org.example.none --store \"$POINT\"", "org.example.none")
    // As where another backup is under way, or was killed, and where the repository's disk is full.
    let fake =
      "mkdir -p $SCRATCH/bin; printf '#!/bin/sh\\n%s\\n' \"$FAKE\" >$SCRATCH/bin/restic; "
      + "chmod 755 $SCRATCH/bin/restic; PATH=$SCRATCH/bin:$PATH; "
    try refusal(
      "FAKE='echo unable to create lock: already locked >&2; exit 1'; \(fake) backup check",
      "'restic unlock' ends its claim", status: 3)
    try refusal(
      "FAKE='echo write: no space left on device >&2; exit 1'; \(fake) backup now --store \"$POINT\"",
      "deletes old backups")
    try refusal("FAKE='echo {; exit 0'; \(fake) backup list", "printed something that can't be understood")
    try refusal("FAKE='kill -9 $$'; \(fake) backup now --store \"$POINT\"", "was ended by signal 9")
    let damaged = try fixture.shell(
      "backup now --store \"$POINT\" && chmod 600 \"$REPOSITORY\"/data/*/* "
        + "&& for pack in \"$REPOSITORY\"/data/*/*; do echo x >>$pack; done; backup check --read-data"
    )
    #expect(damaged.status == 8 && damaged.errors.contains("is damaged"), "\(damaged.errors)")
    let without = try fixture.shell(
      "unshare -m sh -c 'mount --bind /dev/null \"$(command -v restic)\"; "
        + "\"$INSULA\" backup list --repository /r --password-file '$PASSWORD",
      as: RunFixture.root)
    #expect(without.errors.contains("apt-get install restic"), "\(without.errors)")
  }

  /// A disk that is too small for what comes back.
  @Test func fullDiskLosesNothing() throws {
    let disk = try Ext4(megabytes: 32)
    let fixture = try BackupFixture(store: disk.path + "/store")
    _ = try fixture.succeed(
      """
      mkdir -p "$POINT/Users/$(id -un)/projects"; touch $DATA/.rc
      head -c 12000000 /dev/urandom >$DATA/Documents/large; echo old >"$POINT/Users/$(id -un)/Documents/old"
      init; backup now --store "$POINT"
      head -c 10000000 /dev/urandom >"$POINT/Users/$(id -un)/Documents/filler"
      """)
    let before = try fixture.seen(at: fixture.run.mounted.point)
    let failed = try fixture.shell("backup restore --to \"$POINT\" --replace")
    #expect(failed.status == 1 && failed.errors.contains("No space left"), "\(failed.output)\(failed.errors)")
    #expect(try fixture.seen(at: fixture.run.mounted.point) == before)
    let again = try fixture.succeed(
      "rm \"$POINT/Users/$(id -un)/Documents/filler\"; backup restore --to \"$POINT\" --replace")
    #expect(again.contains("with the data of 1 app"))
  }

  /// Killed at any moment, each container and each file is as it was or as it is in the backup.
  @Test func stoppedRestoresLeaveOldOrNew() throws {
    let rounds = ProcessInfo.processInfo.environment["INSULA_RESTORE_KILLS"].flatMap(Int.init) ?? 12
    let fixture = try BackupFixture()
    let result = try fixture.succeed(
      """
      home="$POINT/Users/$(id -un)"
      fill() {
        for i in $(seq 60); do echo $1 >$DATA/Documents/$i; done
        mkdir -p "$home/Documents/W"
        for i in $(seq 60); do echo $1 >"$home/Documents/W/$i"; echo $1 >"$home/Documents/$i"; done
      }
      fill new; init; backup now --store "$POINT"
      bring "$SCRATCH/x"
      words="backup restore --from $SCRATCH/x$POINT --to $POINT --replace"
      restore() { "$INSULA" $words >/dev/null 2>&1; }
      whole() { [ "$(ls "$1" | wc -l)" = 60 ] && [ "$(cat "$1"/* | sort -u | wc -l)" = 1 ]; }
      # The first one takes longer than those that follow.
      for time in first usual; do began=$(date +%s%N); restore; took=$(( $(date +%s%N) - began )); done
      for round in $(seq \(rounds)); do
        fill old
        python3 - $took "$INSULA" $words <<'END'
      import random, subprocess, sys
      process = subprocess.Popen(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
      try:
          process.wait(random.uniform(0, int(sys.argv[1]) / 1e9))
          print("whole")
      except subprocess.TimeoutExpired:
          process.kill()
          process.wait()
          print("killed")
      END
        for place in "$DATA/Documents" "$home/Documents/W"; do
          # The daemon may exchange a container while this looks, for a client that was killed meanwhile.
          whole "$place" || { sleep 2; whole "$place"; } || { echo "torn: $place"; exit 1; }
        done
        cat "$home"/Documents/[0-9]* | sort -u | grep -vxE 'old|new' && { echo torn; exit 1; }
      done
      restore
      cat $DATA/Documents/* "$home"/Documents/[0-9]* "$home"/Documents/W/* | sort | uniq -c
      ls -A "$home/Documents" "$home/Library/Containers" | grep '^[.]' | grep -vx .localized || echo clean
      """)
    #expect(result.contains("    180 new\n") && result.hasSuffix("\nclean\n"), "\(result)")
    #expect(result.components(separatedBy: "killed\n").count > rounds / 3, "\(result)")
    _ = try fixture.run.mounted.run(["unmount", fixture.run.mounted.point])
    let checked = try fixture.run.mounted.run(["check", fixture.run.mounted.store])
    #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
  }

  @Test func rightsComeBackWhenThatIsWanted() throws {
    let fixture = try BackupFixture()
    let seen = try fixture.succeed(
      """
      cd "$POINT/Users/$(id -un)/Documents"; mkdir Project; echo a >Project/a
      "$INSULA" grant $APP Project --read-only --store "$POINT"
      "$INSULA" consent deny $APP photos --store "$POINT"
      "$INSULA" consent allow $APP contacts --store "$POINT"
      init; backup now --store "$POINT"
      "$INSULA" revoke $APP --all --store "$POINT" || "$INSULA" revoke $APP Project --store "$POINT"
      "$INSULA" consent reset $APP --store "$POINT"
      backup restore --to "$POINT" --replace
      "$INSULA" grants --store "$POINT"; "$INSULA" consent list --store "$POINT"
      echo then; backup restore --to "$POINT" --replace --rights
      "$INSULA" grants --store "$POINT"; "$INSULA" consent list --store "$POINT"
      """)
    let parts = seen.components(separatedBy: "then\n")
    try #require(parts.count == 2)
    let before = parts[0].components(separatedBy: "Restored").last ?? ""
    #expect(!before.contains("Project") && !before.contains("contacts"), "\(seen)")
    #expect(parts[1].contains("Documents/Project") && parts[1].contains("read-only"), "\(seen)")
    #expect(parts[1].contains("contacts") && parts[1].contains("denied"), "\(seen)")
  }

  @Test func whatCantBeBroughtBackDoesNotKeepTheRest() throws {
    let fixture = try BackupFixture()
    let seen = try fixture.succeed(
      """
      cd "$POINT/Users/$(id -un)"; mkdir Documents/D z; echo a >Documents/D/a; ln Documents/D/a z/b
      "$INSULA" acl +a 'everyone deny delete' Documents/D; mkfifo Documents/pipe; echo old >Documents/acl
      "$INSULA" acl +a 'everyone deny execute' Documents/acl
      init; backup now --store "$POINT"; backup restore --to "$POINT" --replace; cat z/b Documents/D/a
      bring "$SCRATCH/x"
      setfattr -n user.com.apple.system.Security -v abc \
        "$SCRATCH/x$POINT/tree/Users/$(id -un)/Documents/acl"
      echo new >Documents/acl
      "$INSULA" backup restore --from "$SCRATCH/x$POINT" --to "$POINT" --replace 2>&1 || echo $?
      cat Documents/acl; "$INSULA" acl Documents/acl
      """)
    #expect(seen.contains("\na\na\n") && seen.contains("Documents/acl: can't read the ACL"), "\(seen)")
    #expect(seen.contains("\n1\nnew\n") && seen.contains("deny execute"), "\(seen)")
  }

  @Test func grantsStayWithWhatTheyAreFor() throws {
    let fixture = try BackupFixture()
    let seen = try fixture.succeed(
      """
      cd "$POINT/Users/$(id -un)/Documents"; mkdir Work Secrets; echo a >Work/a; echo f >file
      "$INSULA" grant $APP Work file --read-write --store "$POINT"
      init; backup now --store "$POINT"; backup restore --to "$POINT" --replace
      "$INSULA" grants --store "$POINT"
      echo then; run cat "$PWD/Work/a" "$PWD/file"
      "$INSULA" revoke $APP Work file --store "$POINT"; bring "$SCRATCH/x"; rm -r Work
      rm -r "$SCRATCH/x$POINT/tree/Users/$(id -un)/Documents/Work"
      ln -s Secrets "$SCRATCH/x$POINT/tree/Users/$(id -un)/Documents/Work"
      "$INSULA" backup restore --from "$SCRATCH/x$POINT" --to "$POINT" --replace --rights 2>&1 || true
      "$INSULA" grants --store "$POINT"
      """)
    let parts = seen.components(separatedBy: "then\n")
    try #require(parts.count == 2)
    #expect(!parts[0].contains("insula-restore") && parts[0].contains("Documents/Work"), "\(seen)")
    #expect(parts[1].hasPrefix("a\nf\n") && parts[1].contains("it is something else by now"), "\(seen)")
    #expect(!parts[1].contains("Secrets  "), "\(seen)")
  }

  @Test func groupsContainersAreReplacedAsAWhole() throws {
    let fixture = try BackupFixture()
    let group = "group.org.example.shared"
    let rights = "<key>com.apple.security.application-groups</key><array><string>\(group)</string></array>"
    try fixture.run.install("Grouped", entitlements: rights)
    let seen = try fixture.succeed(
      """
      place="$("$INSULA" path org.example.grouped group:\(group) --store "$POINT")"
      echo old >"$place/file"; mkdir "$place/d"; echo a >"$place/d/a"; init; backup now --store "$POINT"
      echo new >"$place/file"; echo more >"$place/more"; rm -r "$place/d"
      backup restore --to "$POINT" --replace; cd "$place"; cat file; find . -type f | sort
      """)
    #expect(
      seen.hasSuffix("old\n./.com.apple.mobile_container_manager.metadata.plist\n./d/a\n./file\n"), "\(seen)")
  }
}
