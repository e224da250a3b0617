// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// What the registry of a store says of volumes counts only on the machine on which they were added.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct ForeignVolumeTests {
  /// A store with two directories for all, one of a user's, a home elsewhere and a disk.
  private struct Carried: VolumeFixture {
    let run: RunFixture
    var place: String { run.mounted.temporary.path }

    init(rootless: Bool = false) throws {
      run = try RunFixture(rootless: rootless) { temporary in
        let homes = try temporary.makeDirectory("homes", mode: 0o700)
        if rootless { _ = try Program.run(["chown", "65534:65534", homes]) }
        return ["--home", homes]
      }
      let made = try shell(
        """
        for d in one two own; do mkdir -m 755 $d && echo $d >$d/f; done; chown $1 own one two
        truncate -s 64M disk && mkfs.ext4 -qF disk >/dev/null
        """.replacing("$1", with: "\(run.user.uid)"), as: RunFixture.root)
      try #require(made.status == 0, "\(made)")
      let root = rootless ? nil : RunFixture.root
      try expect("volume add one >/dev/null; volume add two >/dev/null", "", as: root)
      try expect("volume add own >/dev/null", "")
      if !rootless { try expect("volume add \"$PWD/disk\" --at disk >/dev/null", "", as: root) }
    }

    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try run.shell(
        """
        volume() { verb=$1; shift; timeout 100 "$INSULA" volume "$verb" --store "$POINT" "$@"; }
        states() { volume list | awk 'NR > 1 { print $1, $3 }'; }
        PATH=/usr/sbin:/sbin:$PATH; LC_ALL=C; export LC_ALL
        STORE='\(run.mounted.store)'; cd '\(place)' || exit 90
        V="$POINT/Volumes"; NAME='\(run.user.name)'
        \(script)
        """, as: account)
    }

    /// Mounts the store as another machine, or one that has lost its notes, would.
    func mountElsewhere(readOnly: Bool = false) throws {
      _ = try run.mounted.unmount()
      let state = "\(place)/elsewhere"
      try run.mounted.mount(
        options: readOnly ? "ro" : nil,
        before: ["env", "INSULA_MACHINE_STATE=\(state)", "XDG_STATE_HOME=\(state)-of-user"])
    }

    func mountAgain() throws {
      _ = try run.mounted.unmount()
      try run.mounted.mount()
    }

    /// Changes rows of the registry, as whoever has the store in their hands can.
    func change(_ statement: String) throws {
      let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
      let result = try Program.run(
        ["python3", "-c", script, run.mounted.store + "/state/insula.db", statement])
      try #require(result.status == 0, "\(result)")
    }
  }

  private static let root = RunFixture.root

  /// Whoever has made the store and the disk has said in both that the home is somebody else's.
  @Test func aStoreFromElsewhereDoesNotSayWhoseAHomeIs() throws {
    let (carried, ben) = (try Carried(), try TemporaryAccount())
    let owner = ben.account.uid
    _ = try carried.run.mounted.unmount()
    try carried.change("UPDATE home_owners SET owner = \(owner)")
    try carried.expect("chown \(owner) homes/$NAME", "", as: Self.root)
    try carried.mountElsewhere()
    try carried.expect(
      """
      volume confirm Users/$NAME --yes >/dev/null 2>&1; ls $POINT/Users/$NAME 2>&1 | grep -o 'No medium'
      volume info Users/$NAME | tr -s ' \\n' ' ' | grep -o "belongs to uid \(owner), and not to the account"
      ls $V
      """, "No medium\nbelongs to uid \(owner), and not to the account\n", as: Self.root)
  }

  @Test(arguments: [false, true])
  func aStoreFromElsewhereOpensNothingHere(isReadOnly: Bool) throws {
    let carried = try Carried()
    try carried.expect("ls $V; cat $V/one/f", "disk\none\ntwo\none\n", as: Self.root)
    try carried.mountElsewhere(readOnly: isReadOnly)
    for _ in 0..<2 {
      try carried.expect("ls $V/own 2>&1 | grep -c 'No such'", "1\n")
      try carried.expect(
        """
        ls -A $V; cat $V/one/f $V/own/f $V/disk 2>&1 | grep -c 'No such'
        ls $POINT/Users/$NAME 2>&1 | grep -o 'No medium'
        """, "3\nNo medium\n", as: Self.root)
      try carried.expect(
        "states | sed \"s/$NAME/me/\"; \"$INSULA\" status $POINT | grep -o 'not there: .*;'",
        """
        Users/me unconfirmed
        one unconfirmed
        two unconfirmed
        own unconfirmed
        disk unconfirmed
        not there: 5;

        """, as: Self.root)
      // Nor is it served by who takes over from a worker that has died.
      try carried.run.mounted.replaceWorker(byRestart: false)
    }
    try carried.expect(
      "\"$INSULA\" doctor \"$STORE\" | grep -o 'were not added on this machine are not there: 5'",
      "were not added on this machine are not there: 5\n", as: Self.root)
    try carried.expect(
      "grep -o -m 1 'one is not there: it was not added on this machine' \"$STORE/state/daemon.log\"",
      "one is not there: it was not added on this machine\n", as: Self.root)
  }

  /// It says what it opens, and only root's word counts; of several only the one that was named is there.
  @Test func rootConfirmsOneByOne() throws {
    let carried = try Carried()
    try carried.mountElsewhere()
    try carried.expect(
      "volume confirm own --yes 2>&1 | grep -o 'only root lets.*'; ls -A $V",
      "only root lets a volume be there that was not added on this machine\n")
    try carried.expect(
      """
      volume confirm one </dev/null 2>&1 | sed 's/  */ /g' | grep -e '^directory' -e '^for' -e 'nobody can'
      ls -A $V; volume confirm one --yes >/dev/null; cat $V/*/f; volume confirm disk --yes >/dev/null; ls $V
      volume confirm Users/$NAME --yes >/dev/null; stat -c %U $POINT/Users/$NAME/Documents | sed s/$NAME/me/
      """,
      """
      directory \(carried.place)/one
      for everyone
      insula: nobody can be asked here, so nothing was changed; '--yes' lets it be there
      one
      disk
      one
      me

      """, as: Self.root)
    try carried.run.mounted.replaceWorker(byRestart: true)
    try carried.expect("cat $V/*/f; states | grep unconfirmed | wc -l", "one\n2\n", as: Self.root)
    // Where they were added nothing has changed.
    try carried.mountAgain()
    try carried.expect(
      "cat $V/one/f $V/two/f; states | grep unconfirmed | wc -l", "one\ntwo\n0\n", as: Self.root)
  }

  /// A store that calls itself like one of this machine opens what that has, and nothing else.
  @Test func anotherRowOfAKnownStoreDoesNotCount() throws {
    let carried = try Carried()
    _ = try carried.run.mounted.unmount()
    try carried.change("UPDATE volumes SET owner = NULL WHERE name = CAST('own' AS BLOB)")
    try carried.change("UPDATE volumes SET name = CAST('uno' AS BLOB) WHERE name = CAST('one' AS BLOB)")
    try carried.run.mounted.mount()
    try carried.expect(
      "cat $V/*/f; ls $V; states | grep unconfirmed", "two\ndisk\ntwo\nuno unconfirmed\nown unconfirmed\n",
      as: Self.root)
  }

  /// What is ejected here counts no more when an older registry is put back.
  @Test func anEjectedVolumeDoesNotComeBack() throws {
    let carried = try Carried()
    _ = try carried.run.mounted.unmount()
    try carried.expect("cp -a \"$STORE/state/insula.db\" old", "", as: Self.root)
    try carried.run.mounted.mount()
    try carried.expect("volume eject one 2>/dev/null; ls $V", "disk\ntwo\n", as: Self.root)
    _ = try carried.run.mounted.unmount()
    try carried.expect(
      "rm -f \"$STORE\"/state/insula.db-*; cp -a old \"$STORE/state/insula.db\"", "",
      as: Self.root)
    try carried.run.mounted.mount()
    try carried.expect("ls $V; states | grep unconfirmed", "disk\ntwo\none unconfirmed\n", as: Self.root)
  }

  /// What another copy of a store says is being added or deleted was not begun here: its original is whole.
  @Test(arguments: [32, 64]) func whatACopyEndsStays(state: Int) throws {
    let carried = try Carried()
    _ = try carried.run.mounted.unmount()
    // As it is left by a process that has died.
    let left = ".x.new-2147483000"
    try carried.expect(
      """
      cp -a "$STORE/state/insula.db" old; UUID=$(ls homes/.insula); mkdir homes/.insula/$UUID/\(left)
      """, "", as: Self.root)
    try carried.change("UPDATE volumes SET options = options | \(state)")
    try carried.run.mounted.mount()
    try carried.expect("ls -A $V; states | wc -l", "0\n", as: Self.root)
    _ = try carried.run.mounted.unmount()
    try carried.expect("ls -d homes/.insula/*/\(left) | wc -l", "1\n", as: Self.root)
    try carried.expect(
      "rm -f \"$STORE\"/state/insula.db-*; cp -a old \"$STORE/state/insula.db\"", "", as: Self.root)
    try carried.run.mounted.mount()
    try carried.expect("ls $V; states | grep unconfirmed | wc -l", "disk\none\ntwo\n0\n", as: Self.root)
  }

  /// What the registry does not take has no note, so that none is left for ever.
  @Test func whatCantBeAddedLeavesNoNote() throws {
    let carried = try Carried()
    try carried.mountElsewhere()
    let look = "find elsewhere/volumes -type f 2>/dev/null | wc -l"
    // Somebody else changes it, and does not end.
    let script = """
      import sqlite3, subprocess, sys
      other = sqlite3.connect(sys.argv[1]); other.execute("BEGIN IMMEDIATE")
      sys.exit(1 if subprocess.run(sys.argv[2:], stderr=subprocess.DEVNULL).returncode == 0 else 0)
      """
    let add = "volume add three --store \"$POINT\""
    try carried.expect(
      """
      mkdir three; timeout 100 python3 -c '\(script)' "$STORE/state/insula.db" "$INSULA" \(add) && \(look)
      """, "0\n", as: Self.root)
    try carried.expect("\"$INSULA\" \(add) >/dev/null && \(look)", "1\n", as: Self.root)
  }

  @Test func aUsersOwnStoreAsksItsUser() throws {
    let carried = try Carried(rootless: true)
    try carried.expect("ls $V", "one\nown\ntwo\n")
    try carried.mountElsewhere()
    try carried.expect(
      "ls -A $V; volume confirm two --yes >/dev/null; cat $V/*/f; states | grep unconfirmed | wc -l",
      "two\n3\n")
    try carried.mountAgain()
    try carried.expect("ls $V; states | grep unconfirmed | wc -l", "one\nown\ntwo\n0\n")
  }
}
