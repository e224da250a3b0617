// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// What an ACL is to a program that backs up.
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
}
