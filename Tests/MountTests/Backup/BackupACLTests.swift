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
}
