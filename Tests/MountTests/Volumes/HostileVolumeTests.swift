// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Users who try to get by a volume what they do not have.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"))
struct HostileVolumeTests {
  /// Several users of the machine's store, each with a directory of their own.
  private struct Users: VolumeFixture {
    let run: RunFixture
    let other = TemporaryAccountBox()
    /// The user's directory, and the other's; their names are the same.
    let own: String
    let others: String

    init() throws {
      run = try RunFixture(
        entitlements: "<key>com.apple.security.files.user-selected.read-write</key><true/>")
      own = try Self.make("own", in: run.mounted.temporary, for: run.user)
      others = try Self.make("others", in: run.mounted.temporary, for: try other.account)
    }

    private static func make(
      _ name: String, in temporary: TemporaryDirectory, for user: Account
    ) throws -> String {
      try temporary.makeDirectory(name, mode: 0o755)
      let script = "cd \"$0\" && mkdir work && echo \(name) >work/file && chown -R $1:$2 ."
      let made = try Program.run([
        "sh", "-c", script, temporary.appending(name), "\(user.uid)", "\(user.gid)",
      ])
      try #require(made.status == 0, "\(made.errors)")
      return temporary.appending("\(name)/work")
    }

    /// `volume VERB...` is about this store, and `$V` is where its volumes are.
    func shell(_ script: String, as account: Account?) throws -> ProgramResult {
      try run.shell(
        """
        volume() { verb=$1; shift; "$INSULA" volume "$verb" --store "$POINT" "$@"; }
        V="$POINT/Volumes"; OWN='\(own)'; OTHERS='\(others)'
        \(script)
        """, as: account)
    }
  }

  private final class TemporaryAccountBox {
    private var made: TemporaryAccount?
    var account: Account {
      get throws {
        if let made { return made.account }
        let new = try TemporaryAccount()
        made = new
        return new.account
      }
    }
  }

  /// What is made with an inherited ACL gets it by what was made: whoever exchanges the name meanwhile, in
  /// their directory, gets nothing of others' changed.
  @Test(.mayTake(seconds: 120))
  func namesThatAreExchangedChangeNothingOfOthers() throws {
    let users = try Users()
    let script = """
      import ctypes, os, signal, sys, time
      host, tree = sys.argv[1:3]
      libc = ctypes.CDLL(None, use_errno=True)
      number = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
      def exchange():
          return libc.syscall(number, -100, (host + "/secret").encode(), -100, (host + "/x").encode(), 2) == 0
      child = os.fork()
      while child == 0:
          try: os.mknod(tree + "/x", 0o100666)
          except OSError: pass
      secret, swaps, won = os.stat(host + "/secret").st_ino, 0, False
      end = time.monotonic() + 5
      while time.monotonic() < end and not won:
          if not exchange(): continue
          swaps += 1
          for _ in range(swaps % 60): pass
          exchange()
          for name in ("secret", "x"):
              try: found = os.stat(host + "/" + name)
              except OSError: continue
              if found.st_ino == secret and found.st_mode & 0o7777 != 0o600: won = True
          try:
              if os.stat(host + "/x").st_ino == secret: exchange()
              else: os.unlink(host + "/x")
          except OSError: pass
      os.kill(child, signal.SIGKILL); os.waitpid(child, 0)
      print("won" if won else "held", "often" if swaps > 20 else swaps)
      """
    try users.expect("echo top >$OWN/secret; chmod 600 $OWN/secret", "", as: RunFixture.root)
    try users.expect(
      """
      volume add $OWN >/dev/null
      "$INSULA" acl +a 'everyone allow read,file_inherit,directory_inherit' $V/work
      python3 -c '\(script)' $OWN $V/work
      """, "held often\n")
    // And what nobody disturbs has it.
    try users.expect(
      "echo x >$V/work/new; mkdir $V/work/dir; \"$INSULA\" acl $V/work/new $V/work/dir | grep -c inherited",
      "2\n")
  }

  /// A program that somebody else may change runs as its owner no more once they do.
  @Test(arguments: [nil, "nopassthrough"] as [String?])
  func whatIsWrittenLosesSetID(option: String?) throws {
    let users = try Users()
    if let option {
      _ = try users.run.mounted.unmount()
      try users.run.mounted.mount(options: option)
    }
    try users.expect("volume add --at shared $OTHERS >/dev/null", "", as: RunFixture.root)
    for change in [
      "echo x 1<>$f", "echo x >>$f", "fallocate -l 100 $f", "truncate -s 1 $f",
      """
      python3 -c 'import mmap, sys
      mmap.mmap(open(sys.argv[1], "r+b").fileno(), 0)[0:1] = b"x"' $f
      """,
    ] {
      try users.expect(
        """
        cp /bin/true $OTHERS/tool; chown \(try users.other.account.uid) $OTHERS/tool
        chmod 6777 $OTHERS/tool
        """, "", as: RunFixture.root)
      try users.expect("f=$V/shared/tool; \(change); stat -c %a $OTHERS/tool", "777\n")
    }
    // Also when the bits come while it is open.
    try users.expect("cp /bin/true $OTHERS/tool; chmod 777 $OTHERS/tool", "", as: RunFixture.root)
    try users.expect(
      """
      exec 3>>$V/shared/tool; chmod 6777 $OTHERS/tool 2>/dev/null || touch \(users.own)/open
      echo x >&3; stat -c %a $OTHERS/tool
      """, "777\n")
  }

  /// An object is found again on its own volume's mount, whatever others there are on the disk.
  @Test func anotherVolumeOfTheDiskLendsItsMountToNobody() throws {
    let users = try Users()
    let bound = users.run.mounted.temporary.appending("bound")
    try users.run.mounted.temporary.makeDirectory("bound", mode: 0o755)
    let made = try Program.run([
      "sh", "-c",
      "chmod 777 \"$0\" \"$0\"/file; mount --bind \"$0\" \"$1\" && mount -o remount,bind,ro \"$1\"",
      users.others, bound,
    ])
    try #require(made.status == 0, "\(made.errors)")
    defer { _ = try? Program.run(["umount", "-l", bound]) }
    try users.expect("volume add \(bound) --at bound >/dev/null", "", as: RunFixture.root)
    try users.expect(
      """
      volume add $OWN --at first >/dev/null; cd $V/bound; cat file; mkdir \(users.own)/../third
      volume add \(users.own)/../third >/dev/null; volume eject third 2>/dev/null
      (echo x >file) 2>&1 | grep -c 'Read-only'; (echo x >new) 2>&1 | grep -c 'Read-only'
      cat file; echo y >$V/first/y; cat $V/first/y
      """, "others\n1\n1\nothers\ny\n")
  }

  /// What was granted of a volume ends with it, and is never another one's of that name.
  @Test func grantsDoNotLeadToVolumesOfOthers() throws {
    let users = try Users()
    let other = try users.other.account
    try users.expect(
      """
      mkdir $OWN/mine; volume add $OWN >/dev/null; insula grant $APP $V/work/mine >/dev/null
      insula grants $APP | grep -c Volumes/work/mine; volume eject work; insula grants $APP | grep -c Volumes
      volume add $OWN >/dev/null; insula grants $APP | grep -c Volumes; volume eject work
      insula grants 2>&1 | grep -c Volumes || true
      """, "1\n0\n0\n0\n")
    try users.expect(
      """
      mkdir $OTHERS/mine; echo secret >$OTHERS/mine/b; volume add $OTHERS >/dev/null
      mv $V/work/mine $V/work/x
      """, "", as: other)
    try users.expect(
      "insula grants 2>&1 | grep -c -e Volumes -e work; run cat $V/work/x/b 2>/dev/null || echo nothing",
      "0\nnothing\n")
  }

  /// Only what is theirs can users add, and only for as long as they get there.
  @Test func whatOthersHaveClosedIsClosed() throws {
    let users = try Users()
    let other = try users.other.account
    for directory in ["$OTHERS", "/", "/tmp", "/usr", "/etc/ssl"] {
      let refused = try users.shell("volume add \(directory)")
      #expect(refused.ending == .failed, "\(refused)")
    }
    let team = users.run.mounted.temporary.appending("team")
    _ = try Program.run([
      "sh", "-c", "mkdir -p \"$0/data\" && echo q3 >\"$0/data/plan\" && chown $1 \"$0/data\"", team,
      "\(users.run.user.uid)",
    ])
    try users.expect("volume add \(team)/data --at tdata >/dev/null; cat $V/tdata/plan", "q3\n")
    try users.expect("chmod 700 \(team)", "", as: RunFixture.root)
    _ = try users.run.mounted.unmount()
    try users.run.mounted.mount()
    try users.expect(
      "cat $V/tdata/plan 2>&1 | grep -c such; volume info tdata | grep -c 'missing.*Permission denied'",
      "1\n1\n")
    // And what is given to somebody else is no volume any more.
    try users.expect("chmod 755 \(team); chown \(other.uid) \(team)/data", "", as: RunFixture.root)
    try users.expect("volume list >/dev/null; volume info tdata | grep -c 'is not yours'", "1\n")
  }

  /// Whoever looks for others' private names disturbs nobody.
  @Test func aStrangersLookLeavesWorkingDirectories() throws {
    let users = try Users()
    let other = try users.other.account
    let ready = users.run.mounted.temporary.appending("ready")
    try users.run.mounted.temporary.makeDirectory("ready", mode: 0o777)
    try users.expect("volume add $OWN >/dev/null", "")
    let looking = try users.shell(
      """
      setpriv --reuid=\(users.run.user.uid) --regid=\(users.run.user.gid) --clear-groups sh -c '
        cd $0/work && echo >$1/in
        until [ -e $1/looked ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done; pwd -P; ls' $V \(ready) &
      until [ -e \(ready)/in ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      for i in 1 2 3; do setpriv --reuid=\(other.uid) --regid=\(other.gid) --clear-groups stat $V/work; done
      setpriv --reuid=\(users.run.user.uid) --regid=\(users.run.user.gid) --clear-groups \\
        "$INSULA" volume eject work --store "$POINT"
      echo >\(ready)/looked; wait
      """, as: RunFixture.root)
    #expect(looking.output == "\(users.run.mounted.path("Volumes/work"))\nfile\n", "\(looking)")
    #expect(looking.errors.includes("work is in use: pid "), "\(looking)")
    #expect(!looking.errors.includes("deleted"), "\(looking)")
  }

  /// A mount on which nothing may be run stays one.
  @Test func programsStayForbiddenWhereTheyAre() throws {
    let users = try Users()
    let disk = try SmallDisk(bytes: 1 << 20, files: 64)
    _ = try Program.run(["sh", "-c", "cp /bin/true \"$0\"; chmod 755 \"$0/true\"", disk.path])
    _ = try Program.run(["mount", "-o", "remount,noexec", disk.path])
    try users.expect("volume add --at disk \(disk.path) >/dev/null", "", as: RunFixture.root)
    try users.expect("$V/disk/true 2>&1 | grep -c denied; cat $V/disk/true | cmp - /bin/true", "1\n")
  }

  /// What can't be named by a command is not added.
  @Test func namesThatAreNoTextNeedAnother() throws {
    let users = try Users()
    let refused = try users.shell("d=$OWN/$(printf 'bad\\377name'); mkdir \"$d\"; cd \"$d\"; volume add .")
    #expect(refused.errors.includes("its name can't be that of a volume"), "\(refused)")
    try users.expect(
      "cd $OWN/bad*; volume add . --at good >/dev/null; ls $V; volume eject good", "good\n")
  }

  /// What somebody has ejected and still uses costs others nothing, and is bounded.
  @Test func whatIsEjectedAndUsedIsBounded() throws {
    let users = try Users()
    let worker = try #require(try users.run.mounted.daemon())
    try users.expect(
      """
      cd $OWN; mkfifo let-go; exec 9<>let-go
      for i in $(seq 20); do
        mkdir w$i; volume add w$i >/dev/null 2>errors || break
        (cd $V/w$i && echo >in; read line <&9) &
        until [ -e w$i/in ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.01; done
        volume eject w$i --force >/dev/null
      done
      grep -o 'too many volumes' errors; ls -d w* | wc -l
      ticks() { awk '{ print $14 + $15 }' /proc/\(worker)/stat; }
      before=$(ticks); for i in $(seq 30); do volume list >/dev/null; done
      [ $(($(ticks) - before)) -lt 200 ] && echo cheap
      for i in $(seq 20); do echo >&9; done; wait
      until volume add w17 >/dev/null 2>&1 || [ $((w+=1)) -gt 6000 ]; do sleep 0.01; done; volume eject w17
      """, "too many volumes\n17\ncheap\n")
  }
}
