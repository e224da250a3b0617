// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

// How another user may get at files of a home that was there before it became one: its files have POSIX ACLs,
// which refuse that user, and whose masks are the group bits of their modes.

/// POSIX ACLs in homes are not evaluated, so they give nobody anything.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct BackingACLTests {
  /// In a home: a file and a directory of the owner's that refuse a user by their lists alone, and one that
  /// has no list.
  private static let script = """
    import os, struct, sys
    home, owner, other, group = sys.argv[1], *map(int, sys.argv[2:])
    none = 0xffffffff
    def acl(*entries): return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *e) for e in entries)
    def give(path, mode, *entries):
        os.chown(path, owner, group); os.chmod(path, mode)
        if entries: os.setxattr(path, "system.posix_acl_access", acl(*entries))
    os.chmod(home, 0o755)
    os.makedirs(home + "/d")
    for name in "f", "d/g", "p": open(home + "/" + name, "w").write(name + "\\n")
    give(home + "/f", 0o660, (1, 6, none), (2, 0, other), (4, 0, none), (16, 6, none), (32, 0, none))
    give(home + "/d", 0o755, (1, 7, none), (2, 0, other), (4, 5, none), (16, 5, none), (32, 5, none))
    give(home + "/d/g", 0o666)
    give(home + "/p", 0o660)
    """

  @Test(arguments: [false, true], [nil, "nopassthrough"] as [String?])
  func whatHasAPosixACLIsItsOwners(isElsewhere: Bool, option: String?) throws {
    let elsewhere = isElsewhere ? try HomeVolumeTests.Homes() : nil
    let run = try elsewhere?.run ?? RunFixture()
    let (user, mounted) = (run.user, run.mounted)
    let other = try TemporaryAccount()
    let home =
      elsewhere.map { "\($0.source)/\(user.name)" } ?? mounted.backing("Users/\(user.name)")
    let made = try Program.run(
      ["python3", "-c", Self.script, home, "\(user.uid)", "\(other.account.uid)", "\(other.account.gid)"])
    try #require(made.status == 0, "\(made)")
    _ = try mounted.unmount()
    try mounted.mount(options: option)
    func look(as account: Account) throws -> String {
      try run.shell(
        """
        cd "$POINT/Users/\(user.name)"
        for file in f d/g p; do
          cat $file 2>/dev/null || echo "$file: $?"; echo more 2>/dev/null >>$file || echo "$file stays"
        done
        """, as: account
      ).output
    }
    #expect(try look(as: other.account) == "f: 1\nf stays\nd/g: 1\nd/g stays\np\n")
    #expect(try look(as: user) == "f\nd/g\np\nmore\n")
    // Without the list the mode counts.
    let removed = try Program.run(["setfattr", "-x", "system.posix_acl_access", home + "/d"])
    try #require(removed.status == 0, "\(removed)")
    _ = try mounted.unmount()
    try mounted.mount(options: option)
    #expect(try look(as: other.account) == "f: 1\nf stays\nd/g\nmore\np\nmore\nmore\n")
  }
}
