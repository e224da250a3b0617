// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What a hostile repository, app or user may try with a restore:
//
// - write outside of what is restored, by `..`, links or odd names: `hostileBackupsLeadNowhere`,
//   `pathsOfSnapshotsArePlain`
// - get devices, programs that run as root, or files of others into a home: `hostileBackupsLeadNowhere`
// - open what only some may change, or place apps that nobody has signed: `standardDirectoriesStayAsTheyAre`
// - have an app that somebody else has signed get another app's data: `otherTeamsGetNoData`
// - get another grant than the one that there was: `BackupEngineTests/grantsStayWithWhatTheyAreFor`
// - have root write into the home of a user as root: `BackupEngineTests/rootRestoresEachHomeAsItsOwner`
// - put something else in the place of what restic writes: `restoreTakesNoWayThatOthersCanChange`
// - have their data restored over somebody else's: `latestIsOnesOwn`
// - learn the password from the list of processes, or from what is printed: `passwordIsNoWordOfACommand`
// - lose what is there, by stopping it or by a full disk: `BackupEngineTests/stoppedRestoresLeaveOldOrNew`,
//   `BackupEngineTests/fullDiskLosesNothing`

// And with a backup:
//
// - have it follow links to what only the one who makes it may read: `linksInTheViewLeadNowhere`

/// Hostile backups, and those who are hostile while there are backups.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HostileBackupTests {
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
        #"{"format":1,"insula":"1","made":1,"store":"/s","apps":APPS,"grants":[],"consents":[],"#
        + #""kinds":["data"],"containers":[{"home":"USER","kind":"data","identifier":"org.example.notes","#
        + #""team":"ABCDE12345"}]}"#
    ) throws {
      let app =
        #"[{"identifier":"org.example.notes","name":"N","version":"1","team":"ABCDE12345","#
        + #""seal":"../..","bundle":"../../x"}]"#
      let text = manifest.replacing("APPS", with: app).replacing("USER", with: user)
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
      let ending: Ending = said == "another version" ? .wrongFormat : .failed
      #expect(refused.ending == ending && refused.errors.contains(said), "\(manifest): \(refused)")
    }
    try make("rm ../../../manifest.json; ln -s '\(outside)/in' ../../../manifest.json")
    #expect(try restore().errors.contains("is not a backup that was brought back"))
    try make("rm ../../../manifest.json; head -c 5000000 /dev/zero >../../../manifest.json")
    #expect(try restore().errors.contains("can't be read"))
  }

  /// The attack: a directory becomes a link while a program that goes by paths is in it.
  @Test(arguments: ["user", "root", "rootless"]) func linksInTheViewLeadNowhere(backer: String) throws {
    guard KernelRelease.own >= KernelRelease(5, 14) else {
      return print("skipped: before Linux 5.14 all links are followed")
    }
    let fixture = try RunFixture(rootless: backer == "rootless")
    let result = try fixture.shell(
      """
      cd "$POINT/Users/\(fixture.user.name)/Documents"; mkdir there; echo told >there/text
      ln -s there link; ln -s .. out
      "$INSULA" backup run --store "$POINT" -- sh -c \
        'cat there/text; readlink link out; cat link/text; ls out/'
      cat link/text
      """, as: backer == "root" ? RunFixture.root : nil)
    #expect(result.output == "told\nthere\n..\ntold\n", "\(result.output)\(result.errors)")
    #expect(
      result.errors.components(separatedBy: "Too many levels of symbolic links").count == 3,
      "\(result.errors)")
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

  /// What a program in restic's place calls a backup of insula's.
  @Test(arguments: ["/../../x", "/", "/a/./b", "//a", "a/b", "--password-command=touch /nowhere/x", "/a/.."])
  func pathsOfSnapshotsArePlain(path: String) throws {
    let fixture = try BackupFixture()
    let seen = try fixture.shell(
      """
      mkdir "$SCRATCH/bin" "$REPOSITORY"; cat >"$SCRATCH/bin/restic" <<'END'
      #!/bin/sh
      echo "$@" >>"$SCRATCH/called"
      echo '[{"id":"0123456789abcdef","time":"2026","hostname":"'$(hostname)'",'
      echo '"paths":["\(path)"],"tags":["insula"]}]'
      END
      chmod 755 "$SCRATCH/bin/restic"; PATH="$SCRATCH/bin:$PATH"
      backup restore latest --to "$POINT" --replace; cat "$SCRATCH/called"
      """, as: RunFixture.root)
    #expect(seen.errors.contains("insula has not made the backup 01234567"), "\(seen.errors)")
    #expect(seen.output == "snapshots --json --tag insula\n", "\(seen.output)")
  }

  @Test func standardDirectoriesStayAsTheyAre() throws {
    let fixture = try BackupFixture()
    let user = fixture.run.user.name
    let homes = "Users/\(user) Users/\(user)/Documents"
    let seen = try fixture.succeed(
      """
      modes() { cd "$POINT"; stat -c '%a %n' . Users Library Applications Users/Shared \(homes); }
      modes >$SCRATCH/before
      init; backup now --store "$POINT"; bring "$SCRATCH/x"; cd "$SCRATCH/x$POINT/tree"
      chmod 777 . Users Library Users/Shared \(homes)
      mkdir -p Users/\(user)/Applications/Fake.app/Contents; chmod -R o+rX "$SCRATCH"
      "$INSULA" backup restore --from "$SCRATCH/x$POINT" --to "$POINT" --replace --user \(user)
      modes | diff $SCRATCH/before -; cd "$POINT"
      ls Users/\(user)/Applications
      """, as: RunFixture.root)
    #expect(!seen.contains("777") && !seen.contains("Fake"), "\(seen)")
  }

  @Test func latestIsOnesOwn() throws {
    let fixture = try BackupFixture()
    let other = try TemporaryAccount()
    try fixture.run.succeed("user", "add", other.account.name, "--store", fixture.run.mounted.store)
    _ = try fixture.succeed(
      """
      echo mine >"$POINT/Users/$(id -un)/Documents/a"; init; backup now --store "$POINT"
      chmod -R a+rwX "$REPOSITORY"
      """)
    let name = other.account.name
    let seen = try fixture.shell(
      "backup restore --to \"$POINT\" --replace; ls \"$POINT/Users/\(name)/Documents\"", as: other.account)
    #expect(
      seen.errors.contains("that was made on this machine for you") && seen.output.isEmpty, "\(seen.errors)")
  }

  @Test func restoreTakesNoWayThatOthersCanChange() throws {
    let fixture = try BackupFixture()
    _ = try fixture.succeed("init; backup now --store \"$POINT\"", as: RunFixture.root)
    for script in [
      "TMPDIR=$POINT/Users/Shared", "chmod 777 $SCRATCH; mkdir $SCRATCH/a; TMPDIR=$SCRATCH/a",
      "TMPDIR=$SCRATCH",
    ] {
      let seen = try fixture.shell("\(script) backup restore --to \"$POINT\" --replace", as: RunFixture.root)
      #expect(
        seen.status == 1 && seen.errors.contains("set TMPDIR to another directory"),
        "\(script): \(seen.errors)")
    }
  }

  /// A program in restic's place notes what it was given.
  @Test func passwordIsNoWordOfACommand() throws {
    let fixture = try BackupFixture()
    let seen = try fixture.succeed(
      """
      mkdir "$SCRATCH/bin" "$REPOSITORY"; cat >"$SCRATCH/bin/restic" <<'END'
      #!/bin/sh
      case "$1" in unlock) exit 0 ;; version) exec echo restic 0.14.0 ;; esac
      echo "$@" >&2; env | grep RESTIC >&2; exit 12
      END
      chmod 755 "$SCRATCH/bin/restic"; export PATH="$SCRATCH/bin:$PATH"
      backup now --store "$POINT" 2>&1 || echo $?
      export RESTIC_PASSWORD=secret
      "$INSULA" backup list --repository rest:https://anna:geheim@example.org/ 2>&1 || true
      """)
    #expect(seen.contains("restic: backup --json --tag insula,user="), "\(seen)")
    #expect(
      seen.contains("RESTIC_PASSWORD_FILE=\(fixture.password)") && !seen.contains("a secret"), "\(seen)")
    #expect(seen.contains("the password is not that of rest:https://anna@example.org/;"), "\(seen)")
  }
}
