// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import LinuxIO
internal import TestSupport
internal import Testing

/// Flags travel with what ordinary programs copy.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct FlagCopyTests {
  private static let ways = [
    "cp -a from to", "cp -r --preserve=all from to", "cp -r --preserve=xattr,mode,timestamps from to",
    "rsync -aX from/ to",
    "mkdir to; tar --xattrs -cf - -C from . | tar --xattrs --xattrs-include='*' -xpf - -C to",
  ]

  /// By the owner, with the flags that are the owner's, and by root with all; in both modes.
  @Test(arguments: ["root", "user", "rootless"])
  func copyingProgramsCarryFlags(who: String) throws {
    let account = try TemporaryAccount()
    let mounted = try MountedStore.mounted(owner: who == "rootless" ? account.account : nil)
    let become =
      who == "root"
      ? []
      : ["setpriv", "--reuid=\(account.account.uid)", "--regid=\(account.account.gid)", "--clear-groups"]
    func run(_ line: String) throws -> ProgramResult {
      try Program.run(
        become + ["timeout", "100", "sh", "-c", "cd '\(mounted.path("Users/Shared"))' && \(line)"],
        environment: ["PATH": "\(Program.insula.dropLast("/insula".count)):/usr/bin:/bin", "LC_ALL": "C"])
    }
    let root = who == "root"
    let made = try run(
      """
      set -e; umask 022; mkdir -p from/dir/deep
      for name in plain uchg uappnd hidden schg; \
      do echo $name > from/dir/$name; chmod 640 from/dir/$name; done
      echo deep > from/dir/deep/file; touch -d '2001-02-03 04:05:06' from/dir/* from/dir/deep/file
      chmod 750 from/dir; touch -d '2002-02-03 04:05:06' from/dir/deep from/dir
      insula flags uchg from/dir/uchg; insula flags uappnd from/dir/uappnd
      insula flags hidden,nodump from/dir/hidden; insula flags uchg from/dir/deep
      insula flags \(root ? "schg,arch" : "opaque") from/dir/schg
      """)
    try #require(made.status == 0, "\(made.errors)")
    // Size, mode, times and flags of everything.
    func look(_ tree: String) throws -> String {
      let listed = try run(
        "cd \(tree) && find dir | sort | xargs stat -c '%n %s %a %Y' && insula flags -R dir | sort")
      #expect(listed.status == 0, "\(listed.errors)")
      return listed.output
    }
    let expected = try look("from")
    #expect(expected.contains("uchg") && expected.contains("hidden"))
    for way in Self.ways {
      let copied = try run(way)
      #expect(copied.status == 0 && copied.errors.isEmpty, "\(way): \(copied.errors)")
      #expect(try look("to") == expected, "\(way)")
      let gone = try run("insula flags -R nouchg,nouappnd\(root ? ",noschg" : "") to && rm -r to")
      #expect(gone.status == 0, "\(gone.errors)")
    }
    // Through a filesystem that knows nothing of flags, and back.
    let plain = try TemporaryDirectory(mode: 0o777)
    let there = try run("cp -a from '\(plain.path)/from' && cp -a '\(plain.path)/from' to")
    #expect(there.status == 0, "\(there.errors)")
    #expect(try look("to") == expected)
    // After a while the flags hold for whoever copied, too.
    let late = try run("sleep 11; rm to/dir/uchg || { echo x >> to/dir/uchg; } || touch to/dir/deep/new")
    #expect(late.ending == .failed, "\(late)")
    #expect(try run("cat to/dir/uchg").output == "uchg\n")
  }

  /// What an ordinary user may not set is refused and told, and all else comes over.
  @Test func rootsFlagsAreNotCarriedByOthers() throws {
    let mounted = try MountedStore.mounted()
    let place = mounted.path("Users/Shared")
    let made = try Program.run([
      "sh", "-c", "cd '\(place)' && echo text > file && '\(Program.insula)' flags schg file",
    ])
    #expect(made.status == 0, "\(made.errors)")
    func asNobody(_ line: String) throws -> ProgramResult {
      try Program.runAsNobody(["sh", "-c", "cd '\(place)' && \(line)"], environment: ["LC_ALL": "C"])
    }
    #expect(try asNobody("cp -a file copy && cat copy && rm copy").output == "text\n")
    let synced = try asNobody("rsync -X file copy; echo $?; cat copy")
    #expect(synced.output == "23\ntext\n" && synced.errors.contains("Operation not permitted"))
    #expect(try asNobody("setfattr -n user.org.insula.flags -v schg copy").ending == .failed)
    #expect(try asNobody("setfattr -n user.org.insula.flags -v uchg file").ending == .failed)
    #expect(try asNobody("setfattr -x user.org.insula.flags file").ending == .failed)
  }
}
