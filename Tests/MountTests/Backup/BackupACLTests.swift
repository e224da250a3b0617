// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What ACLs and names are to a program that backs up.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BackupACLTests {
  /// In the view of a backup it says whose file it belongs to, and nowhere else.
  @Test(arguments: [false, true]) func listsSayWhoseTheyAre(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let show = """
      import os, sys
      print(os.getxattr(sys.argv[1], "user.com.apple.system.Security")[4:36].hex())
      """
    let script = try fixture.mounted.temporary.write(show, to: "show.py")
    try #require(chmod(script, 0o644) == 0)
    let result = try fixture.shell(
      """
      cd "$POINT/Users/$(id -un)/Documents" && echo text >file
      "$INSULA" acl +a 'everyone allow read' file && python3 '\(script)' "$PWD/file"
      "$INSULA" backup run --store "$POINT" -- python3 '\(script)' "$PWD/file"
      "$INSULA" acl file
      """)
    let zeros = String(repeating: "0", count: 64)
    let uid = String(fixture.user.uid, radix: 16)
    let owner = "ffffeeeeddddccccbbbbaaaa" + String(repeating: "0", count: 8 - uid.count) + uid
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(lines.first == zeros, "\(result)")
    #expect(lines.dropFirst().first == owner + String(repeating: "0", count: 32), "\(result)")
    #expect(lines.last == " 0: group:everyone allow read", "\(result)")
  }

  /// The attack: whoever owns a directory renames what others have in it, so that a backup misses that.
  @Test func namesStandForWhatTheyStoodForFirst() throws {
    let fixture = try RunFixture()
    let result = try fixture.shell(
      """
      cd "$POINT/Users/Shared"; mkdir -m 777 Team; cd Team; mkdir d; t=$(mktemp -d)
      for name in x other saved gone d/in; do echo $name >$name; done
      until_there() { for n in $(seq 1500); do [ -e $1 ] && return; sleep 0.02; done; echo late; }
      ( until_there $t/go; mv x a; mv other x; mv d e; rm gone; echo new >s; mv s saved; touch $t/done ) &
      "$INSULA" backup run --store "$POINT" -- sh -c 'ls; touch '$t'/go
        for n in $(seq 1500); do [ -e '$t'/done ] && break; sleep 0.02; done
        for name in x other saved gone d/in a; do echo $name: $(cat $name 2>&1 | sed "s/.*: //"); done'
      wait; rm -r $t
      """, as: RunFixture.root)
    let lines = result.output.split(separator: "\n").map(String.init)
    #expect(
      lines.suffix(6) == [
        "x: x", "other: other", "saved: new", "gone: No such file or directory", "d/in: Stale file handle",
        "a: x",
      ], "\(result)")
  }

  /// The attack: restic reads what a file contains by a descriptor, and its ACL by its name.
  ///
  /// Meanwhile whoever owns the directory gives that name to something else.
  @Test func attributesAreOfWhatWasOpened() throws {
    let fixture = try RunFixture()
    let script = try fixture.mounted.temporary.write(
      """
      import os, signal, sys, time
      signal.alarm(60)
      names = sorted(os.listdir("."))
      opened = {name: os.open(name, os.O_RDONLY) for name in names if name[0] == "x"}
      before = os.stat("w").st_ino
      open(sys.argv[1] + "/go", "w")
      while not os.path.exists(sys.argv[1] + "/done"): time.sleep(0.02)
      print(os.path.exists("w") and os.stat("w").st_ino != before)
      for name, file in opened.items():
          is_same = os.fstat(file).st_ino == os.stat(name).st_ino
          print(name, is_same, "user.com.apple.system.Security" in os.listxattr(name))
      """, to: "open.py")
    try #require(chmod(script, 0o644) == 0)
    let result = try fixture.shell(
      """
      cd "$POINT/Users/Shared"; mkdir -m 777 Team; cd Team; t=$(mktemp -d)
      for name in x1 x2 x3 x4 own1 own2 own3 own4 own5 w; do echo $name >$name; done
      "$INSULA" acl +a 'everyone deny execute' x1; "$INSULA" acl +a 'everyone deny execute' x2
      "$INSULA" acl +a 'everyone deny execute' x3; "$INSULA" acl +a 'everyone allow read' own4
      ( for n in $(seq 1500); do [ -e $t/go ] && break; sleep 0.02; done
        mv x1 y; mv own1 x1; rm x2; mv own2 x2; mv own3 x3; mv x4 z; mv own4 x4
        rm w; mv own5 w; touch $t/done ) &
      "$INSULA" backup run --store "$POINT" -- python3 '\(script)' $t; wait; rm -r $t
      """, as: RunFixture.root)
    let own = try fixture.shell(
      """
      cd "$POINT/Users/$(id -un)/Documents"; mkdir T; chmod 777 T; cd T; t=$(mktemp -d); touch w own
      ( for n in $(seq 1500); do [ -e $t/go ] && break; sleep 0.02; done; rm w; mv own w; touch $t/done ) &
      "$INSULA" backup run --store "$POINT" -- python3 '\(script)' $t; wait; rm -r $t
      """)
    #expect(own.output == "False\n", "\(own)")
    let same = "False\nx1 True True\nx2 True True\nx3 True True\nx4 True False\n"
    #expect(result.output.hasSuffix(same), "\(result)")
  }

  /// The attack: a pipe in the place of a file, which a program that backs up opens, and waits for ever.
  @Test(arguments: [false, true]) func filesDontBecomePipes(rootless: Bool) throws {
    let fixture = try RunFixture(rootless: rootless)
    let script = try fixture.mounted.temporary.write(
      """
      import os, signal, sys, time
      signal.alarm(60)
      os.chdir(sys.argv[1]); signals = sys.argv[2]
      print(os.listdir("."), os.stat("f").st_size)
      open(signals + "/go", "w")
      while not os.path.exists(signals + "/done"): time.sleep(0.02)
      for name in ["f", "p"]:
          try: print(name, os.read(os.open(name, os.O_RDONLY | os.O_NOFOLLOW), 9))
          except OSError as e: print(name, e.strerror)
      """, to: "open.py")
    try #require(chmod(script, 0o644) == 0)
    let result = try fixture.shell(
      """
      cd "$POINT/Users/$(id -un)/Documents"; mkdir -m 755 D; cd D; echo text >f; mkfifo p; t=$(mktemp -d)
      ( for n in $(seq 1500); do [ -e $t/go ] && break; sleep 0.02; done; mv p f; touch $t/done ) &
      "$INSULA" backup run --store "$POINT" -- python3 '\(script)' "$PWD" $t; wait; rm -r $t
      """)
    #expect(
      result.output == "['f'] 5\nf No such file or directory\np No such file or directory\n",
      "\(result.output)\(result.errors)")
  }
}
