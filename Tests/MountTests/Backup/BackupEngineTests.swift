// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What a hostile repository, app or user may try with a restore:
//
// - write outside of what is restored, by `..`, links or odd names: `hostileBackupsLeadNowhere`
// - get devices, programs that run as root, or files of others into a home: `hostileBackupsLeadNowhere`
// - have an app that somebody else has signed get another app's data: `otherTeamsGetNoData`
// - have root write into the home of a user as root: `rootRestoresEachHomeAsItsOwner`
// - learn the password from the list of processes, or from what is printed: `passwordIsNoWordOfACommand`
// - lose what is there, by stopping it or by a full disk: `stoppedRestoresLeaveOldOrNew`,
//   `fullDiskLosesNothing`

/// `insula backup init`, `now`, `list`, `restore`, `forget` and `check`, by restic.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BackupEngineTests {
  /// Shows the lines that differ.
  private func expectSame(_ now: String, _ before: String, sourceLocation: SourceLocation = #_sourceLocation)
  {
    let (new, old) = (now.components(separatedBy: "\n"), before.components(separatedBy: "\n"))
    #expect(
      Set(new).subtracting(old).sorted() == Set(old).subtracting(new).sorted(), sourceLocation: sourceLocation
    )
    #expect(new.count == old.count, sourceLocation: sourceLocation)
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

    let other = try MountedStore(owner: rootless ? fixture.run.user : nil)
    try other.mount()
    for words in [
      ["trust", "add", fixture.run.mounted.temporary.appending("store/root.pem"), "--store", other.store],
      ["user", "add", fixture.run.user.name, "--store", other.store],
    ] {
      let result = try other.run(words)
      try #require(result.status == 0, "\(words): \(result.errors)")
    }
    // Without the app its data are left out, and that is said.
    let without = try fixture.shell("backup restore --to '\(other.point)'")
    #expect(without.status != 0 && without.errors.contains("--bundles"), "\(without.output)\(without.errors)")
    let bundles = fixture.run.mounted.temporary.appending("bundles")
    let copied = try Program.run([
      "cp", "-r", fixture.run.mounted.temporary.appending("store/Notes-made"), bundles,
    ])
    try #require(copied.status == 0 && chmod(bundles, 0o755) == 0)
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
    #expect(asked.status != 0 && asked.errors.contains("--replace"), "\(asked.errors)")
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
      cp /bin/true Users/\(user)/Documents/program; chmod 4755 Users/\(user)/Documents/program
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
    #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.scratch).isEmpty)
  }

  /// Each is what restic or a stranger may have made in a directory.
  @Test func hostileBackupsLeadNowhere() throws {
    let fixture = try BackupFixture()
    let outside = fixture.run.mounted.temporary.appending("outside")
    for name in ["outside", "outside/in"] {
      try fixture.run.mounted.temporary.makeDirectory(name, mode: 0o777)
    }
    let user = fixture.run.user.name
    let home = fixture.run.mounted.temporary.appending("hostile/tree/Users/\(user)")
    func make(
      _ script: String,
      manifest: String =
        #"{"format":1,"insula":"1","made":1,"store":"/s","apps":APPS,"grants":[],"consents":[]}"#
    ) throws {
      let app =
        #"[{"identifier":"org.example.notes","name":"N","version":"1","team":"ABCDE12345","#
        + #""seal":"../..","bundle":"../../x"}]"#
      let text = manifest.replacingOccurrences(of: "APPS", with: app)
      _ = try fixture.succeed(
        """
        rm -rf "$(dirname "$POINT")/hostile"; mkdir -p '\(home)/Documents'; cd '\(home)'
        printf '%s' '\(text)' >../../../manifest.json
        \(script)
        chown -R \(fixture.run.user.uid) ../../..
        """, as: RunFixture.root)
    }
    func restore() throws -> ProgramResult {
      let result = try fixture.shell(
        "\"$INSULA\" backup restore --from \"$(dirname \"$POINT\")/hostile\" --to \"$POINT\" --replace")
      let there = try FileManager.default.subpathsOfDirectory(atPath: outside)
      #expect(there == ["in"], "\(there)")
      return result
    }
    let containers = "Library/Containers"
    let data = "\(containers)/org.example.notes/Data"
    let large = "setfattr -n user.x -v \"$(head -c 60000 /dev/zero | tr '\\0' x)\""
    let other = "\(containers)/org.example.other/Data/Documents"
    for script in [
      "rmdir Documents; ln -s '\(outside)' Documents",
      "mkdir -p \(containers); ln -s '\(outside)' \(containers)/org.example.notes",
      "mkdir -p \(containers)/org.example.notes; ln -s '\(outside)' \(containers)/org.example.notes/Data",
      "mkdir -p \(data); ln -s '\(outside)' \(data)/Documents",
      "mkdir -p \(other); echo x >\(other)/x",
      "cd ..; rm -r \(user); ln -s '\(outside)' \(user); mkdir z; cd z; mkdir -p a/b/c; cd a",
      "cd ../..; rm -r Users; ln -s '\(outside)' Users; mkdir -p a/b/c; cd a/b/c",
      "mknod Documents/device c 1 3; mkfifo Documents/fifo; ln -s /nowhere Documents/out",
      "cp /bin/true Documents/root; chmod 6755 Documents/root; ln Documents/root Documents/two",
      "mkdir -p \"$(printf 'Documents/%0250d' 1)\"; \(large) Documents || true",
    ] {
      try make(script)
      _ = try restore()
    }
    let left = try fixture.succeed(
      """
      cd "$POINT/Users/\(user)"; find . -perm /6000; find . -type c -o -type b; ls \(containers)
      [ -d Documents ] && [ ! -L Documents ] && [ "$(readlink Documents/out)" = /nowhere ]
      """, as: RunFixture.root)
    #expect(left == "org.example.notes\n", "\(left)")
    for (manifest, said) in [
      (#"{"format":2}"#, "another version"), ("{", "can't be read"), (#"{"format":1}"#, "can't be read"),
      ("[[[[[[[[", "can't be read"), ("", "can't be read"),
    ] {
      try make("true", manifest: manifest)
      let refused = try restore()
      #expect(refused.status != 0 && refused.errors.contains(said), "\(manifest): \(refused.errors)")
    }
    try make("rm ../../../manifest.json; ln -s '\(outside)/in' ../../../manifest.json")
    #expect(try restore().errors.contains("is not a backup that was brought back"))
    try make("rm ../../../manifest.json; head -c 5000000 /dev/zero >../../../manifest.json")
    #expect(try restore().errors.contains("can't be read"))
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

  @Test func otherTeamsGetNoData() throws {
    let fixture = try BackupFixture()
    _ = try fixture.succeed(
      """
      echo secret >$DATA/Documents/secret; init; backup now --store "$POINT"; rm $DATA/Documents/secret
      bring "$SCRATCH/x"
      sed -i 's/ABCDE12345/ZZZZZ99999/' "$SCRATCH/x$POINT/manifest.json"
      """)
    let refused = try fixture.shell(
      "\"$INSULA\" backup restore --from \"$SCRATCH/x$POINT\" --to \"$POINT\" --replace; ls $DATA/Documents")
    #expect(refused.errors.contains("signed by another team, ABCDE12345"), "\(refused.errors)")
    #expect(!refused.output.contains("secret\n"), "\(refused.output)")
  }

  /// A program in restic's place notes what it was given.
  @Test func passwordIsNoWordOfACommand() throws {
    let fixture = try BackupFixture()
    let seen = try fixture.succeed(
      """
      mkdir "$SCRATCH/bin" "$REPOSITORY"; cat >"$SCRATCH/bin/restic" <<'END'
      #!/bin/sh
      echo "$@" >&2; env | grep RESTIC >&2; exit 12
      END
      chmod 755 "$SCRATCH/bin/restic"; export PATH="$SCRATCH/bin:$PATH"
      backup now --store "$POINT" 2>&1 || echo $?
      export RESTIC_PASSWORD=secret
      "$INSULA" backup list --repository rest:https://anna:geheim@example.org/ 2>&1 || true
      """)
    #expect(seen.contains("restic: backup --json --tag insula --"), "\(seen)")
    #expect(
      seen.contains("RESTIC_PASSWORD_FILE=\(fixture.password)") && !seen.contains("a secret"), "\(seen)")
    #expect(seen.contains("the password is not that of rest:https://anna@example.org/;"), "\(seen)")
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
    try refusal("backup restore --to \"$POINT\"", "there is no backup of insula's in")
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
      began=$(date +%s%N); restore; took=$(( $(date +%s%N) - began ))
      for round in $(seq \(rounds)); do
        fill old
        at=$(python3 -c "import random; print(random.uniform(0, $took / 1e9))")
        timeout -s KILL $at "$INSULA" $words >/dev/null 2>&1 && echo whole || echo killed
        for place in "$DATA/Documents" "$home/Documents/W"; do
          [ "$(ls "$place" | wc -l)" = 60 ] && [ "$(cat "$place"/* | sort -u | wc -l)" = 1 ] ||
            { echo "torn: $place"; exit 1; }
        done
        cat "$home"/Documents/[0-9]* | sort -u | grep -vxE 'old|new' && { echo torn; exit 1; }
      done
      restore
      cat $DATA/Documents/* "$home"/Documents/[0-9]* "$home"/Documents/W/* | sort | uniq -c
      ls -A "$home/Documents" "$home/Library/Containers" | grep -c '^[.]' || true
      """)
    #expect(result.contains("    180 new\n") && result.hasSuffix("\n0\n"), "\(result)")
    #expect(result.components(separatedBy: "killed\n").count > rounds / 2, "\(result)")
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
}
