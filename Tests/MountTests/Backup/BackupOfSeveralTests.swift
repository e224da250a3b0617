// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

// What a hostile user may try with a backup of everybody's that root makes and restores:
//
// - be given what others have granted or allowed: `rightsComeBackToWhoeverHadThem`
// - have what others have left out, by an app of the same identifier: `groupsAreThoseOfEachUsersApp`
// - keep root from backing up, or from restoring, with very many or very long grants:
//   `grantsOfOneUserKeepNobodyFromABackup`
// - keep root from restoring others' homes, with a file that can't be brought back:
//   `noHomeKeepsOthersFromTheirs`

/// Backups of several users.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BackupOfSeveralTests {
  private let fixture: BackupFixture
  private let other: TemporaryAccount

  init() throws {
    fixture = try BackupFixture()
    other = try TemporaryAccount()
    try fixture.run.succeed("user", "add", other.account.name, "--store", fixture.run.mounted.store)
  }

  private var users: [Account] { [fixture.run.user, other.account] }

  /// Root makes a home's part of a backup its owner's, who could not read all of it.
  @Test func whatOthersKeepToThemselvesIsNotHandedOver() throws {
    let (one, two) = (fixture.run.user, other.account)
    let home = "$POINT/Users/\(one.name)"
    _ = try fixture.succeed("mkdir -m 733 \"\(home)/Public/old\"")
    _ = try fixture.succeed(
      """
      cd "\(home)/Public"; echo open >old/open; umask 077; echo dropped >"Drop Box/letter"
      echo private >old/note; mkdir old/own; echo private >old/own/deep
      mkdir -m 755 old/shown; echo private >old/shown/note
      echo open >old/shown/open; chmod 644 old/shown/open
      """, as: two)
    _ = try fixture.succeed("init; backup now --store \"$POINT\"", as: RunFixture.root)
    let restored = try fixture.shell("backup restore --to \"$POINT\" --replace", as: RunFixture.root)
    // The owner can't remove all of what has been replaced.
    #expect(
      restored.ending == .failed && restored.errors.contains("is kept as '.insula-restore-"),
      "\(restored.output)\(restored.errors)")
    // What is open by its own mode may have been in a directory that is closed.
    for path in ["note", "own", "open", "shown/note", "shown/open", "shown"] {
      #expect(restored.errors.contains("/Public/old/\(path) (uid \(two.uid))"), "\(restored.errors)")
    }
    let seen = try fixture.shell(
      """
      cd "\(home)/Public"; cat "Drop Box/letter"; stat -c %U "Drop Box/letter"
      """)
    #expect(seen.output == "dropped\n\(one.name)\n", "\(seen.output)\(seen.errors)")
  }

  /// An app that two have is one bundle, and one that is no longer what was installed keeps nobody from a
  /// backup.
  @Test func bundlesAreThoseThatWereInstalled() throws {
    let (one, store) = (fixture.run.user, fixture.run.mounted.store)
    let made = fixture.run.mounted.temporary.appending("store/Notes-made/Notes.app")
    try fixture.run.succeed("install", made, "--user", one.name, "--store", store)
    let script = """
      init; backup now --with-apps --store "$POINT"
      plain ls latest | grep -c '/apps/[0-9a-f]*\\.app$'
      """
    let same = try fixture.shell("set -e\n" + script, as: RunFixture.root)
    #expect(same.status == 0 && same.output.hasSuffix("\n1\n"), "\(same.output)\(same.errors)")
    #expect(!same.errors.contains("only the data"), "\(same.errors)")
    // As if the name were something else's by now.
    try fixture.run.install("Other")
    let place = "\(store)/tree/Applications/Other.app/Contents/_CodeSignature/CodeResources"
    let changed = try fixture.shell(
      "set -e; printf x >>'\(place)'\n" + script.replacing("init; ", with: ""), as: RunFixture.root)
    #expect(changed.status == 0 && changed.output.hasSuffix("\n1\n"), "\(changed.output)\(changed.errors)")
    #expect(
      changed.errors.contains("only the data of these apps") && changed.errors.contains("org.example.other"),
      "\(changed.errors)")
    #expect(!changed.errors.contains("org.example.notes"), "\(changed.errors)")
  }

  /// In the home that comes first there are paths as long as paths can be, and a hole without an end.
  @Test func noHomeKeepsOthersFromTheirs() throws {
    let homes = users.map(\.name).sorted()
    let script = try fixture.run.mounted.temporary.write(
      """
      import os, sys
      def make(length, begin):
          here = os.getcwd()
          total = len(here) + len("/tree")
          while total + 201 < length - 20:
              os.makedirs("x" * 200, exist_ok=True); os.chdir("x" * 200); total += 201
          open(begin + "f" * (length - total - 2), "w").write("deep")
          os.chdir(here)
      make(4060, "a"); make(4094, "b")
      """, to: "deep.py")
    let made = """
      cd "$POINT/Users/\(homes[0])/Documents"; python3 '\(script)'; echo one >w1
      cd "$POINT/Users/\(homes[1])/Documents"; echo two >w2; chown \(homes[1]) w2
      chown -R \(homes[0]) "$POINT/Users/\(homes[0])/Documents"/*
      init; backup now --store "$POINT"
      """
    _ = try fixture.succeed(made, as: RunFixture.root)
    let lost = """
      rm -r "$POINT/Users/\(homes[0])/Documents"/[wx]* "$POINT/Users/\(homes[1])/Documents/w2"

      """
    let seen = """

      cd "$POINT/Users"; cat */Documents/w?; find \(homes[0])/Documents -type f -name 'aff*' | wc -l
      find \(homes[0])/Documents -type f -name 'bff*' | wc -l
      """
    let restored = try fixture.shell(
      lost + "backup restore --to \"$POINT\" --replace; echo $?" + seen, as: RunFixture.root)
    #expect(restored.output.hasSuffix("\n1\none\ntwo\n1\n0\n"), "\(restored)")
    #expect(
      restored.errors.contains("restic could not bring back this") && restored.errors.contains("/bfff"),
      "\(restored.errors)")
    #expect(!restored.errors.contains("/afff"), "\(restored.errors)")

    let hole = """
      truncate -s 300M "$POINT/Users/\(homes[0])/Documents/whole"; backup now --store "$POINT"
      rm "$POINT/Users/\(homes[0])/Documents/whole"
      small=/var/tmp/insula-test-small.$$; mkdir -m 755 $small
      mount -t tmpfs -o size=100m,mode=755 none $small

      """
    let small = try fixture.shell(
      hole + lost + """
        TMPDIR=$small; backup restore --to "$POINT" --replace; code=$?
        umount $TMPDIR; rmdir $TMPDIR; echo $code; cd "$POINT/Users"; cat */Documents/w2
        """, as: RunFixture.root)
    #expect(small.output.hasSuffix("\n1\ntwo\n"), "\(small)")
    #expect(
      small.errors.contains("the home of \(homes[0]) was not restored: there is too little room")
        || small.errors.contains("restic could not bring back this"), "\(small.errors)")
  }

  /// As root has another program do it; each home has a user of its own to be named.
  @Test func whatAllShareComesBackFromADirectory() throws {
    let home = "$POINT/Users/\(other.account.name)"
    let seen = try fixture.succeed(
      """
      mkdir "$POINT/Users/Shared/common"; echo all >"$POINT/Users/Shared/common/of"
      echo own >"\(home)/Documents/own"; init; backup now --store "$POINT"
      mkdir -m 700 "$SCRATCH/b"; bring "$SCRATCH/b"
      rm -r "$POINT/Users/Shared/common" "\(home)/Documents/own"
      "$INSULA" backup restore --from "$SCRATCH/b$POINT" --to "$POINT" --replace 2>&1 |
        sed 's/[0-9].* that/N that/'
      cat "$POINT/Users/Shared/common/of"; ls "\(home)/Documents"
      """, as: RunFixture.root)
    #expect(seen.hasSuffix("Restored N that all users share.\nall\n"), "\(seen)")
  }

  @Test func rightsComeBackToWhoeverHadThem() throws {
    let (one, two) = (fixture.run.user, other.account)
    _ = try fixture.succeed(
      """
      cd "$POINT/Users/\(one.name)/Documents"; mkdir One; "$INSULA" grant $APP One --store "$POINT"
      mkdir "$POINT/Users/Shared/common"; chmod 777 "$POINT/Users/Shared/common"
      "$INSULA" grant $APP "$POINT/Users/Shared/common" --read-write --store "$POINT"
      "$INSULA" consent allow $APP contacts --store "$POINT"
      """)
    _ = try fixture.succeed(
      """
      cd "$POINT/Users/\(two.name)/Documents"; mkdir Two; "$INSULA" grant $APP Two --store "$POINT"
      "$INSULA" consent deny $APP contacts --store "$POINT"
      "$INSULA" consent allow $APP photos --store "$POINT"
      """, as: two)
    let show = "\"$INSULA\" grants --store \"$POINT\"; \"$INSULA\" consent list --store \"$POINT\""
    let before = try users.map { try fixture.succeed(show, as: $0) }
    try #require(before[0].contains("common") && before[1].contains("Two"), "\(before)")
    _ = try fixture.succeed("init; backup now --store \"$POINT\"", as: RunFixture.root)
    // Everything, and one user alone.
    for more in ["", "--user \(two.name)"] {
      for user in users {
        _ = try fixture.shell(
          "cd \"$POINT\"; \"$INSULA\" revoke $APP --all --store .; \"$INSULA\" consent reset $APP --store .",
          as: user)
      }
      let restored = try fixture.shell(
        "backup restore --to \"$POINT\" --replace --rights \(more)", as: RunFixture.root)
      #expect(restored.status == 0, "\(restored.output)\(restored.errors)")
      let now = try users.map { try fixture.succeed(show, as: $0) }
      #expect(Self.facts(now[1]) == Self.facts(before[1]), "\(now[1])")
      #expect(Self.facts(now[0]) == (more.isEmpty ? Self.facts(before[0]) : []), "\(now[0])")
    }
  }

  /// What a group of apps has belongs to the backup of an app, whatever app others have of that identifier.
  @Test func groupsAreThoseOfEachUsersApp() throws {
    let group = "group.org.example.shared"
    let rights = "<key>com.apple.security.application-groups</key><array><string>\(group)</string></array>"
    try fixture.run.install("Grouped", entitlements: rights)
    let app = "org.example.grouped"
    for user in users {
      _ = try fixture.succeed(
        "\"$INSULA\" path \(app) home --store \"$POINT\"; "
          + "touch \"$(\"$INSULA\" path \(app) group:\(group) --store \"$POINT\")/in-$(id -un)\"", as: user)
    }
    // Each of them may have the smaller number.
    for user in users {
      try makeOwn("Grouped", for: user)
      let found = try users.map { user in
        try fixture.succeed(
          "\"$INSULA\" backup run \(app) --store \"$POINT\" -- find \"$POINT\" -name 'in-*'", as: user)
      }
      let everybodys = try fixture.succeed(
        "\"$INSULA\" backup run \(app) --store \"$POINT\" -- find \"$POINT\" -name 'in-*'",
        as: RunFixture.root)
      for (other, text) in zip(users, found) {
        let isOwn = other.uid == user.uid
        // Who has an app of their own has that one backed up, and it is in no group.
        #expect(text.contains("in-\(other.name)") == !isOwn, "\(user.name): \(found)")
        #expect(everybodys.contains("in-\(other.name)") == !isOwn, "\(everybodys)")
      }
      try fixture.run.succeed(
        "uninstall", app, "--user", user.name, "--keep-data", "--store", fixture.run.mounted.store)
    }
  }

  /// Grants whose paths take very much room as text.
  @Test func grantsOfOneUserKeepNobodyFromABackup() throws {
    let (one, two) = (fixture.run.user, other.account)
    _ = try fixture.succeed(
      """
      cd "$POINT/Users/\(one.name)/Documents"; mkdir -p $(seq -s / 14); d=$(seq -s / 14)
      (cd $d; mkdir $(seq 101 360); "$INSULA" grant $APP * --read-only --store "$POINT")
      python3 - <<'END'
      import os
      names = [str(n) for n in range(1, 15)]
      while names:
          above = "/".join(names[:-1]) or "."
          os.rename(above + "/" + names[-1], above + "/" + chr(1) * 250)
          names.pop()
      END
      """)
    _ = try fixture.succeed(
      """
      cd "$POINT/Users/\(two.name)/Documents"; mkdir Two; echo letter >letter
      "$INSULA" grant $APP Two --read-only --store "$POINT"
      """, as: two)
    let made = try fixture.shell("init && backup now --store \"$POINT\"", as: RunFixture.root)
    #expect(made.status == 0 && made.output.contains("Backup "), "\(made.output)\(made.errors)")
    #expect(
      made.errors.contains("all that \(one.name) has") && !made.errors.contains(two.name), "\(made.errors)")
    _ = try fixture.succeed(
      "\"$INSULA\" revoke $APP --all --store \"$POINT\"; rm \"$POINT/Users/\(two.name)/Documents/letter\"",
      as: two)
    let restored = try fixture.shell(
      "backup restore --to \"$POINT\" --replace --rights --user \(two.name)", as: RunFixture.root)
    #expect(restored.status == 0, "\(restored.output)\(restored.errors)")
    let now = try fixture.succeed(
      "\"$INSULA\" grants --store \"$POINT\"; cat \"$POINT/Users/\(two.name)/Documents/letter\"", as: two)
    #expect(now.contains("Documents/Two") && now.hasSuffix("letter\n"), "\(now)")
  }

  /// Installs an app of a user's own that is in no group.
  private func makeOwn(_ name: String, for user: Account) throws {
    let directory = "store/own-\(user.name)"
    try fixture.run.mounted.temporary.makeDirectory(directory, mode: 0o755)
    let path = fixture.run.mounted.temporary.appending(directory)
    try fixture.run.succeed("new-app", name, path)
    try fixture.run.succeed("sign", "\(path)/\(name).app", "--identity", "tester")
    try fixture.run.succeed(
      "install", "\(path)/\(name).app", "--user", user.name, "--store", fixture.run.mounted.store)
  }

  /// Without the times.
  private static func facts(_ text: String) -> [String] {
    text.split(separator: "\n").filter { $0.contains("org.example") }.map { line in
      line.split(separator: " ").filter { !$0.contains(":") }.joined(separator: " ")
    }.sorted()
  }
}
