// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What a hostile user or app may try with backups:
//
// - read what others have, in a view that is not theirs: `othersAreNotBackedUp`
// - change anything through it, or start programs with more rights: `nothingIsChangedInIt`
// - ask for one as an app: `appsHaveNone`
// - have the user's own documents left out: `appsDoNotMarkWhatTheyWereGranted`,
//   `appsDoNotMarkWhatTheyAreEntitledTo`
// - have what others own left out, or their backup fail: `ownersAloneMark`, `othersPipesAndSocketsStopNobody`
// - keep the mount from being taken away: `unmountEndsIt`
// - have very many views: they are in the same budget as the user's running apps (`RunLimitTests`)

/// `insula backup`, on a mounted store.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BackupViewTests {
  /// Fills a home with what is backed up, under names that begin with "in", and with what is not.
  private static let fill = """
    cd "$POINT/Users/$(id -un)"; umask 077
    mkdir -p Library/Caches .cache .Trash Documents/inside $DATA/Library/Caches/a $DATA/tmp/b
    touch Library/Caches/out .cache/out .Trash/out Documents/inside/in1 $DATA/Library/Caches/a/out
    touch $DATA/tmp/b/out $DATA/.in2 "$DATA/Library/Application Support/in3" $DATA/Documents/in4
    """
  private static let find =
    "FIND=$(cat <<'END'\nfind \"$POINT\" -name 'in[0-9]*' -o -name '.in*' -o -name out | sort\nEND\n)\n"
  /// `backup WORD... [-- COMMAND]`.
  private static let backup = """
    backup() { verb=$1; shift; "$INSULA" backup $verb --store "$POINT" "$@"; }
    bare() {
      python3 -c 'import os, sys; os.setxattr(sys.argv[1], sys.argv[2], b"")' "$1" \
        com.apple.metadata:com_apple_backup_excludeItem
    }

    """

  private func shell(_ fixture: RunFixture, _ script: String, as account: Account? = nil) throws
    -> ProgramResult
  {
    try fixture.shell(Self.backup + Self.find + script, as: account)
  }

  /// The last names of what is found there.
  private func names(_ result: ProgramResult) -> [String] {
    result.output.split(separator: "\n").map { String($0.split(separator: "/").last ?? "") }.sorted()
  }

  @Test(arguments: [false, true])
  func viewHasWhatIsBackedUpAndNothingElse(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    try #require(try fixture.inside("true").status == 0)
    let filled = try fixture.shell(Self.fill)
    try #require(filled.status == 0, "\(filled.errors)")
    let found = try shell(fixture, "backup run -- sh -c \"$FIND\"")
    #expect(
      found.status == 0 && names(found) == [".in2", "in1", "in3", "in4"], "\(found.output)\(found.errors)")
    // What is not listed can't be opened by its name either, nor does an app's bundle exist.
    let guessed = try shell(
      fixture,
      """
      backup run -- sh -c 'cat "$DATA/tmp/b/out" "$DATA/Library/Caches/a/out"; ls "$BUNDLE" "$POINT/System"
        ls -a "$DATA/Library" "$POINT/Users/'$(id -un)'"'
      """)
    #expect(guessed.errors.components(separatedBy: "No such file").count == 5, "\(guessed.errors)")
    #expect(!guessed.output.contains("Caches") && !guessed.output.contains(".cache"), "\(guessed.output)")
    let whole = try shell(
      fixture, "backup run -- ls \"$BUNDLE\" \"$POINT/System\"", as: rootless ? nil : RunFixture.root)
    #expect(whole.errors.components(separatedBy: "No such file").count == 3, "\(whole.errors)")
    // Of one app.
    let one = try shell(
      fixture, "backup run org.example.notes -- sh -c \"$FIND\"")
    #expect(names(one) == [".in2", "in3", "in4"], "\(one.output)\(one.errors)")
    let unknown = try shell(fixture, "backup run org.example.none -- true")
    #expect(unknown.ending == .failed && unknown.errors.contains("org.example.none"), "\(unknown)")
  }

  @Test(arguments: [false, true])
  func nothingIsChangedInIt(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let result = try shell(
      fixture,
      """
      cd "$POINT/Users/$(id -un)/Documents"; echo 1 >a; cp /bin/true program; chmod 4755 program
      backup run -- sh -c 'echo 2 >>a; rm -f a; mv a b; chmod 777 a; mkdir d; touch new; ln a c; ./program
        setfattr -n user.x -v 1 a; umount "$POINT"; ls'; cat a
      """)
    #expect(result.output == "a\nprogram\n1\n", "\(result.output)\(result.errors)")
    #expect(result.errors.components(separatedBy: "Read-only").count >= 7, "\(result.errors)")
    #expect(result.errors.contains("./program: Permission denied"), "\(result.errors)")
  }

  @Test func othersAreNotBackedUp() throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    try fixture.succeed("user", "add", other.account.name, "--store", fixture.mounted.store)
    try #require(
      try fixture.shell("umask 077; touch \"$POINT/Users/$(id -un)/Documents/in9\"", as: other.account).status
        == 0)
    let refused = try shell(fixture, "backup run --user \(other.account.name) -- true")
    #expect(refused.ending == .notPermitted && refused.errors.contains("only root"), "\(refused)")
    // Whoever writes to the daemon past the command gets no more.
    let line = #"{"verb":"backup","backup":{"apps":[],"user":\#(other.account.uid)}}"#
    #expect(try fixture.ask(line).contains("only root"))
    let own = try shell(fixture, "backup run -- ls \"$POINT\" \"$POINT/Users\"")
    #expect(
      own.output.contains(fixture.user.name) && !own.output.contains(other.account.name), "\(own.output)")
    #expect(!own.output.contains("Library") && !own.output.contains("Shared"), "\(own.output)")
    // Root's is everybody's, or the one's who is named.
    let find = "-- sh -c \"$FIND\""
    #expect(names(try shell(fixture, "backup run \(find)", as: RunFixture.root)).contains("in9"))
    let named = try shell(fixture, "backup run --user \(other.account.name) \(find)", as: RunFixture.root)
    #expect(names(named) == ["in9"], "\(named.output)\(named.errors)")
  }

  @Test func appsHaveNone() throws {
    let fixture = try RunFixture()
    let result = try fixture.inside(
      #"""
      python3 - <<'END'
      import os, socket
      s = socket.socket(socket.AF_UNIX); s.connect(os.environ["INSULA_SOCKET"])
      s.sendall(b'{"verb":"backup","backup":{"apps":[]}}\n'); print(s.makefile().readline())
      END
      """#)
    #expect(result.output.contains("an app can't ask for this"), "\(result.output)\(result.errors)")
  }

  // MARK: Marks

  /// What a file's path follows.
  static let marks = [
    "setfattr -n user.com.apple.metadata:com_apple_backup_excludeItem -v x",
    "setfattr -n user.xdg.robots.backup -v false", "\"$INSULA\" backup exclude",
    "bare",
  ]

  @Test(arguments: marks, [false, true])
  func everyMarkCounts(mark: String, rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let result = try shell(
      fixture,
      """
      cd "$POINT/Users/$(id -un)/Documents"; mkdir d e; touch d/in1 e/in2 e/in3 in4
      \(mark) d && \(mark) e/in2 || exit 1
      backup run -- sh -c 'find . -name "in*" | sort; cat d/in1 e/in2 2>&1'
      "$INSULA" backup why d/in1 e/in3
      "$INSULA" backup include d e/in2 && backup run -- find . -name 'in*' | sort; "$INSULA" backup why d/in1
      """)
    let document = fixture.mounted.path("Users/\(fixture.user.name)/Documents")
    #expect(
      result.output == """
        ./e/in3
        ./in4
        cat: d/in1: No such file or directory
        cat: e/in2: No such file or directory
        d/in1: not backed up; \(document)/d is marked; 'insula backup include' takes the mark away
        e/in3: backed up
        ./d/in1
        ./e/in2
        ./e/in3
        ./in4
        d/in1: backed up

        """, "\(result.output)\(result.errors)")
  }

  /// What a program finds under Apple's bare name is what it was told to set under the other, and back.
  @Test func bareNameIsTheSameAttribute() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      cd "$POINT/Users/$(id -un)/Documents"; touch a; python3 - <<'END'
      import os, plistlib, subprocess
      bare = "com.apple.metadata:com_apple_backup_excludeItem"
      subprocess.run([os.environ["INSULA"], "backup", "exclude", "a"], check=True)
      value = os.getxattr("a", bare); print(plistlib.loads(value), os.getxattr("a", "user." + bare) == value)
      print(sorted(name for name in os.listxattr("a") if "backup" in name))
      os.removexattr("a", bare); print([name for name in os.listxattr("a") if "excludeItem" in name])
      END
      """)
    #expect(
      result.output == """
        com.apple.backupd True
        ['user.com.apple.metadata:com_apple_backup_excludeItem', 'user.xdg.robots.backup']
        []

        """, "\(result.output)\(result.errors)")
  }

  @Test func whatCantBeMarkedIsRefusedInWords() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      cd "$POINT/Users/$(id -un)/Documents"; ln -s a link; mkfifo pipe
      "$INSULA" backup exclude link pipe nothing /usr/bin/env "$BUNDLE"
      "$INSULA" backup why /usr/bin/env nothing
      "$INSULA" backup run true; "$INSULA" backup run --; true
      """)
    for words in [
      "link: only files and directories can be left out of backups", "pipe: only files",
      "nothing: No such file",
      "/usr/bin/env: is not on an insula mount", "Notes.app: Read-only file system",
      "write '--' before COMMAND",
      "COMMAND is missing",
    ] {
      #expect(result.errors.contains(words), "\(words)\n\(result.errors)")
    }
  }

  @Test func appsAreSwitchedOffAndOn() throws {
    let fixture = try RunFixture()
    try #require(try fixture.inside("touch $HOME/Documents/in1").status == 0)
    let find = "-- sh -c 'find \"$POINT\" -name in1 | wc -l'"
    let result = try shell(
      fixture,
      "backup off org.example.notes; backup run \(find); backup on Notes; backup run \(find); backup off x.y")
    #expect(
      result.output.hasSuffix("not backed up any more.\n0\norg.example.notes is backed up.\n1\n"),
      "\(result.output)\(result.errors)")
    #expect(result.ending == .failed && result.errors.contains("x.y"))
  }

  /// An app may say that its own files need no backup, and not that its user's do not.
  @Test func appsDoNotMarkWhatTheyWereGranted() throws {
    let fixture = try RunFixture()
    let mark = "setfattr -n user.xdg.robots.backup -v false"
    let granted = try fixture.shell(
      "cd \"$POINT/Users/$(id -un)\"; mkdir Documents/g; touch Documents/g/f; "
        + "insula grant \"$APP\" \"$PWD/Documents/g\" --read-write >&2; pwd")
    let home = granted.output.trimmingCharacters(in: .whitespacesAndNewlines)
    let result = try fixture.inside(
      """
      for f in \(home)/Documents/g \(home)/Documents/g/f; do
        \(mark) $f && echo marked; "$INSULA" backup exclude $f && echo marked
        setfattr -n user.other -v 1 $f && echo other
      done; touch $HOME/own; \(mark) $HOME/Documents && echo own
      """)
    #expect(result.output == "other\nother\nown\n", "\(granted.errors)\(result.output)\(result.errors)")
    #expect(result.errors.contains("Operation not permitted"), "\(result.errors)")
  }

  /// Nor where they are entitled to a folder of their user's.
  @Test func appsDoNotMarkWhatTheyAreEntitledTo() throws {
    let fixture = try RunFixture(
      entitlements: "<key>com.apple.security.files.downloads.read-write</key><true/>")
    #expect(
      try fixture.shell("\"$INSULA\" consent allow $APP downloads --store \"$POINT\" > /dev/null").status == 0
    )
    let result = try fixture.inside(
      """
      d=${HOME%/Library/Containers/*}/Downloads; touch $d/f && echo made
      for f in $d $d/f; do setfattr -n user.xdg.robots.backup -v false $f && echo marked; done
      setfattr -n user.xdg.robots.backup -v false $HOME/Documents && echo own
      """)
    #expect(result.output == "made\nown\n", "\(result.output)\(result.errors)")
  }

  /// A mark takes everything in a directory along, so who may only write to it can't set one.
  @Test func ownersAloneMark() throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    let made = try fixture.shell("cd $POINT/Users/Shared; mkdir -m 777 open; touch open/in1; pwd")
    try #require(made.status == 0, "\(made.errors)")
    let result = try fixture.shell(
      """
      cd $POINT/Users/Shared; touch open/in2
      for f in open $POINT/Users/\(fixture.user.name)/Public/Drop\\ Box; do
        \(Self.marks[1]) "$f" && echo marked; \(Self.marks[2]) "$f" && echo marked
      done; \(Self.marks[1]) open/in2 && echo own
      """, as: other.account)
    #expect(result.output == "own\n", "\(result.output)\(result.errors)")
    let found = try shell(fixture, "backup run -- sh -c \"$FIND\"", as: RunFixture.root)
    #expect(names(found) == ["in1"], "\(found.output)\(found.errors)")
  }

  /// What others leave behind does not make root's backup fail.
  ///
  /// Of pipes there is nothing to back up.
  @Test func othersPipesAndSocketsStopNobody() throws {
    let fixture = try RunFixture()
    let made = try fixture.shell(
      """
      cd "$POINT/Users/$(id -un)/Documents"; umask 077; mkfifo pipe
      python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
      """)
    try #require(made.status == 0, "\(made.errors)")
    let result = try shell(
      fixture,
      "backup run -- sh -c 'tar -C $POINT -cf - . | tar -tf - | grep pipe; stat $(find $POINT -name socket)'",
      as: RunFixture.root)
    #expect(
      result.status == 0 && !result.output.contains("pipe") && !result.errors.contains("pipe"),
      "\(result.output)\(result.errors)")
  }

  @Test func whatIsMarkedNoMoreIsFound() throws {
    let fixture = try RunFixture()
    let result = try shell(
      fixture,
      """
      cd "$POINT/Users/$(id -un)/Documents"; echo text >f; "$INSULA" backup exclude f; t=$(mktemp -d)
      ( for n in $(seq 1000); do [ -e $t/go ] && break; sleep 0.02; done
        "$INSULA" backup include "$PWD/f"; touch $t/done ) &
      backup run -- sh -c 'cat f; ls; touch '$t'/go
        for n in $(seq 1000); do [ -e '$t'/done ] && break; sleep 0.02; done; cat f; ls'; rm -r $t
      """)
    #expect(result.output == "text\nf\n", "\(result.output)\(result.errors)")
  }

  @Test func whyTellsOfLinksAndOthers() throws {
    let fixture = try RunFixture()
    let other = try TemporaryAccount()
    let result = try fixture.shell(
      """
      cd "$POINT/Users/$(id -un)/Documents"; ln -s "$(mktemp -u)" link; "$INSULA" backup why link
      "$INSULA" backup why $POINT/Users/\(fixture.user.name)/../Shared "$BUNDLE/Contents" $POINT/System
      """)
    #expect(
      result.output.hasPrefix("link: backed up\n") && result.output.contains("Shared: backed up\n")
        && result.output.contains("Notes.app is an installed app")
        && result.output.contains("is the system domain"), "\(result.output)\(result.errors)")
    try fixture.succeed("user", "add", other.account.name, "--store", fixture.mounted.store)
    let others = try fixture.shell(
      "\"$INSULA\" backup why $POINT/Users/\(fixture.user.name)/Public", as: other.account)
    #expect(others.ending == .failed && others.errors.contains("another user's home"), "\(others)")
  }

  // MARK: While it is made

  @Test func daemonsMayDieMeanwhile() throws {
    guard KernelRelease.own >= KernelRelease(6, 9) else {
      return print("skipped: before Linux 6.9 no daemon is replaced")
    }
    let fixture = try RunFixture()
    let result = try shell(
      fixture,
      """
      cd "$POINT/Users/Shared"; for d in $(seq 20); do mkdir $d; (cd $d; touch $(seq 50)); done
      echo read >1/1
      script=$(cat <<'END'
        pid() { "$INSULA" status --json "${POINT%/*}/store" | grep -o '"pid" *: *[0-9]*' | grep -o '[0-9]*'; }
        exec 4<1/1; find . -type f | wc -l
        for i in 1 2 3; do
          old=$(pid); kill -9 $old; find . -type f | wc -l
          for n in $(seq 200); do new=$(pid); [ "${new:-$old}" = "$old" ] && sleep 0.05 || break; done
        done
        cat <&4; find . -type f | wc -l
      END
      )
      backup run -- sh -c "$script"
      """, as: RunFixture.root)
    #expect(result.output == "1000\n1000\n1000\n1000\nread\n1000\n", "\(result.output)\(result.errors)")
  }

  @Test func unmountEndsIt() throws {
    let fixture = try RunFixture()
    let result = try shell(
      fixture,
      """
      backup run -- sh -c 'echo begun; exec sleep 200' >"${POINT%/*}/store/begun" & run=$!
      until [ -s "${POINT%/*}/store/begun" ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      "$INSULA" unmount "$POINT"; echo "status $?"
      "$INSULA" unmount --lazy "$POINT"; wait $run; echo "status $?"
      """, as: RunFixture.root)
    #expect(result.output.hasPrefix("status 3\n"), "\(result.output)\(result.errors)")
    #expect(result.output.hasSuffix("status 143\n"), "\(result.output)\(result.errors)")
  }

  // MARK: The set

  /// A few of the trees that `Tests/Backup/backup_set.py` is for.
  @Test func backupProgramsTakeWhatTheRulesSay() throws {
    let tools = ["tar", "rsync", "restic", "borg"].filter {
      (try? Program.run(["sh", "-c", "command -v \($0)"]).status) == 0
    }
    for tool in ["restic", "borg"] where !tools.contains(tool) { print("skipped: \(tool) is not installed") }
    let script = Checkout.path("Tests/Backup/backup_set.py")
    let result = try Program.run(
      [
        "timeout", "300", "python3", script, "--trees", "120", "--each", "60", "--tools",
        tools.joined(separator: ","),
      ],
      environment: ["INSULA": Program.insula, "XDG_RUNTIME_DIR": "", "XDG_DATA_HOME": ""])
    #expect(result.status == 0 && result.output.contains("120 trees"), "\(result.output)\(result.errors)")
  }
}
