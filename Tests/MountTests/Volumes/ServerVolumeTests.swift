// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Directories of servers as volumes.
@Suite(.enabled(if: MountedStore.isPossible, "mounting needs root and /dev/fuse"), .mayTake(seconds: 300))
struct ServerVolumeTests {
  private static func has(_ path: String) -> Bool { access(path, X_OK) == 0 }

  private static let sftpIsPossible = has("/usr/bin/sshfs") && has("/usr/sbin/sshd")

  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func aServersDirectoryIsAPartOfTheTree() throws {
    let served = try Served()
    let other = try TemporaryAccount()
    try served.expect(
      """
      volume add \(served.url); cat $D/a; echo two >$D/b; cat $S/b; mkdir $D/d; mv $D/b $D/d/c; cat $S/d/c
      echo late >$S/late; cat $D/late; stat -c %u $D/a; chmod 600 $D/a; stat -c %a $S/a; rm -r $D/d; ls $D
      chown 0 $D/a 2>&1 | grep -c permitted; touch -d @1000000000 $D/a; stat -c %Y $S/a
      ln -s a $D/link; cat $D/link; cp /bin/true $D/t; cmp /bin/true $S/t; $D/t && echo ran
      """,
      """
      \(served.run.mounted.path("Volumes/served"))
      one
      two
      two
      late
      \(served.run.user.uid)
      600
      a
      late
      sub
      1
      1000000000
      one
      ran

      """)
    // What it can't keep is said.
    try served.expect(
      """
      "$INSULA" acl +a 'everyone deny write' $D/a 2>&1 | grep -c 'keeps neither ACLs nor flags'
      "$INSULA" flags hidden $D/a 2>&1 | grep -c 'keeps neither ACLs nor flags'; echo more >>$D/a; cat $D/a
      mv $D/a "$POINT/Users/Shared/" 2>&1; cat "$POINT/Users/Shared/a"; mv "$POINT/Users/Shared/a" $D/
      git init -q $D/r && cd $D/r && git config user.email a@b && git config user.name n && echo x >f &&
        git add f && git commit -qm m && git log --oneline | wc -l
      """, "1\n1\none\nmore\none\nmore\n1\n")
    // The program runs as its user, and nobody else has the volume.
    #expect(
      try Program.run(["ps", "-o", "uid=", "-p", "\(served.program())"]).output.includes(
        "\(served.run.user.uid)"))
    try served.expect(
      "ls $V; cat $D/a 2>&1 | grep -c -e such -e memory; grep -c insula-volume /proc/self/mounts || true",
      "1\n0\n",
      as: other.account)
    // The server's own refusal stands, and root is not led there.
    try served.expect("echo top >$S/top; chmod 600 $S/top", "", as: RunFixture.root)
    try served.expect("cat $D/top 2>&1 | grep -c denied", "1\n")
    try served.expect("cat $D/top 2>&1 | grep -c -e such -e memory", "1\n", as: RunFixture.root)
    try served.expect("volume eject served; ls $V; cat $S/a", "one\nmore\n")
    #expect(eventually { (try? served.programs()) == [] })
  }

  /// Its own refusal stands at once; what others have made is renamed to as it is, and not as it was.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func whatOthersChangeCountsForChangesOfNames() throws {
    let served = try Served()
    try served.expect(
      """
      volume add \(served.url) >/dev/null; cd $D; ls sub; chmod 555 $S/sub
      mv a sub/a 2>&1 | grep -c denied; touch sub/b 2>&1 | grep -c denied; chmod 755 $S/sub; n=0
      until touch sub/b 2>/dev/null || [ $n = 250 ]; do n=$((n+1)); sleep 0.1; done; ls $S/sub
      rename() { /usr/bin/python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])' "$@"; }
      for i in 1 2; do echo $i >m; ls t 2>/dev/null; echo theirs >$S/t; rename m t; cat $S/t t; rm t; done
      echo four >m; ls t 2>/dev/null; mkdir $S/t; rename m t 2>&1 | grep -c IsADirectoryError
      /usr/bin/python3 -c 'import os
      for name in ("x", "y"): os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
      for names in ("xz", "zx", "xz", "zx", "xy"): os.rename(*names)'; ls $S
      """, "1\n1\nb\n1\n1\n2\n2\n1\na\nm\nsub\nt\ny\n")
  }

  /// The data of a file at the next open, also if its size and its time in whole seconds are the same; until
  /// then its pages stay.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func whatTheServerChangesIsSeen() throws {
    let served = try Served()
    try served.expect(
      """
      volume add \(served.url) >/dev/null; put() { printf "$2" | dd of="$1" conv=notrunc status=none; }
      for i in $(seq 100 120); do
        put $S/a $i; cat $D/a >/dev/null; [ "$(cat $D/a)" = $i ] || echo stale $i
      done
      sleep 2.2; cat $D/a; cat $D/a >/dev/null; fincore -n -o PAGES $D/a | tr -d ' '; put $S/a new; cat $D/a
      put $S/a NEW; cat $D/a
      """, "120\n1\nnew\nNEW\n")
  }

  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func grantsOnAServerAreForTheirPaths() throws {
    let served = try Served()
    try served.expect(
      """
      volume add \(served.url) >/dev/null; echo x >$D/sub/f; echo y >$D/secret
      insula grant $APP $D/sub >/dev/null; run sh -c "cat $D/sub/f; ls $D; cat $D/secret 2>&1 | grep -c such
        echo new >$D/sub/n; cat $D/sub/../secret 2>&1 | grep -c such; ln -s ../secret $D/sub/l
        cat $D/sub/l 2>/dev/null || echo no"
      cat $S/sub/n; run sh -c "sleep 300" & running 1
      insula revoke $APP $D/sub >/dev/null; run sh -c "cat $D/sub/f" 2>/dev/null || echo none
      insula kill $APP >/dev/null; wait
      """, "x\nsub\n1\n1\nno\nnew\nnone\n")
  }

  /// What is written through an open file is that file's, and in its place: also where it is open to append,
  /// whatever becomes of its mode, its name and the worker meanwhile.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func whatIsOpenToAppendStaysTheFile() throws {
    let served = try Served()
    try served.expect("volume add \(served.url) >/dev/null; cat $D/a", "one\n")
    let worker = try #require(try served.run.mounted.daemon())
    try served.expect(
      """
      kills() { until [ -e $S/kill ] || [ $((w+=1)) -gt 3000 ]; do sleep 0.02; done; kill -9 \(worker); }
      kills >/dev/null 2>&1 &
      U=\(served.run.user.uid); G=\(served.run.user.gid)
      setpriv --reuid=$U --regid=$G --clear-groups sh -c 'cd "$0" && timeout 60 /usr/bin/python3 - "$@"' \
        $D $S \(worker) <<'END'
      import fcntl, mmap, os, sys, time; server, worker = sys.argv[1:]
      def opened(name, flags=os.O_APPEND):
          open(name, "w").write("x" * 4096)
          return os.open(name, os.O_RDWR | flags)
      def appends(file, does): fcntl.fcntl(file, fcntl.F_SETFL, does and os.O_APPEND)
      def use(file):
          appends(file, False); os.pwrite(file, b"P", 0); appends(file, True); os.write(file, b"E")
      def tell(name, *files):
          for file in files: os.close(file)
          text = open(f"{server}/{name}").read(); print(name, len(text), text[:2], text[-2:])
      file = opened("map"); memory = mmap.mmap(file, 4096); os.chmod("map", 0o444)
      memory[0:1] = b"M"; memory.close(); tell("map", file)
      for name, flags in ("appended", os.O_APPEND), ("changed", 0):
          file = opened(name, flags)
          os.rename(f"{server}/{name}", f"{server}/old")
          open(f"{server}/{name}", "w").write("new"); os.chmod(f"{server}/{name}", 0o666)
          use(file); tell(name, file)
          if flags: tell("old")
      file = opened("copy"); appends(file, False)
      os.copy_file_range(os.open("a", os.O_RDONLY), file, 1, 0, 0); tell("copy", file)
      file = opened("late"); os.chmod("late", 0o444); open(f"{server}/kill", "w").close()
      while os.path.exists(f"/proc/{worker}"): time.sleep(0.02)
      use(file); tell("late", file)
      END
      """,
      "map 4096 Mx xx\nappended 3 ne ew\nold 4097 Px xE\nchanged 3 ne ew\n"
        + "copy 4096 ox xx\nlate 4097 Px xE\n", as: RunFixture.root)
  }

  /// A server that does not answer holds nobody but those who wait for it.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func aServerThatHangsHoldsNobodyElse() throws {
    let served = try Served()
    try served.expect("volume add \(served.url) >/dev/null; echo x >$POINT/Users/Shared/f; cat $D/a", "one\n")
    let program = try served.program()
    kill(program, SIGSTOP)
    defer { kill(program, SIGCONT) }
    try served.expect(
      """
      for i in $(seq 24); do (cat $D/new$i; echo $? >$POINT/Users/Shared/end$i) 2>/dev/null & done
      sleep 1; pids=$(jobs -p); timeout 5 sh -c '
        for i in $(seq 50); do cat $0/Users/Shared/f; done | wc -l; ls $0/Volumes; df $0 | wc -l
        mkdir $0/Users/Shared/dir; mv $0/Users/Shared/dir $0/Users/Shared/dir2
        sync -f $0/Users/Shared/f' "$POINT"
      timeout 5 "$INSULA" volume list --store "$POINT" | grep -c served
      # Who is killed does not wait.
      timeout -s KILL 1 cat $D/other
      timeout 5 sh -c 'while pgrep -x -f "cat $0/other" >/dev/null; do sleep 0.1; done' $D
      echo gone; kill -CONT \(program); wait
      until cat $D/a 2>/dev/null || [ $((w+=1)) -gt 1200 ]; do sleep 0.1; done
      ls $POINT/Users/Shared/end* | wc -l
      """, "50\nserved\n2\n1\ngone\none\n24\n")
    // Taken away by force, all who wait are told.
    kill(program, SIGSTOP)
    try served.expect(
      """
      (timeout 20 cat $D/new 2>&1 | grep -c 'Input/output error') & sleep 0.5
      timeout 5 "$INSULA" volume eject --force served --store "$POINT"; wait; ls $V
      """, "1\n")
    #expect(eventually { kill(program, 0) != 0 || Program.isZombie(program) })
  }

  /// Nor by locks of the kernel's, which it holds while it looks names up and renames.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func aServerThatHangsHoldsNoLocksOfOthers() throws {
    let served = try Served()
    let other = try TemporaryAccount()
    try served.expect(
      """
      volume add \(served.url) >/dev/null; echo x >$D/b; cat $D/a $D/b; cd $POINT/Users/Shared
      mkdir -m 777 d1 d2; touch d1/q; I=$S/disk.img
      truncate -s 16M $I; mkfs.ext4 -qF -E root_owner $I; volume add --engine program $I >/dev/null
      echo kept >$V/disk/kept; ls $V
      """, "one\nx\ndisk\nserved\n")
    let program = try served.program()
    kill(program, SIGSTOP)
    defer { kill(program, SIGCONT) }
    _ = try served.shell(
      """
      (mv -T $D/b $D/sub/zz & stat $D & mkdir $V/xx & mv $D/a $D/sub/ & ) >/dev/null 2>&1; sleep 0.5
      """)
    try served.expect(
      """
      timeout -s KILL 6 mv $POINT/Users/Shared/d1/q $POINT/Users/Shared/d2/r && echo moved
      timeout -s KILL 6 ls $V >/dev/null && echo listed
      timeout -s KILL 6 stat $V/nothing 2>&1 | grep -c such
      """, "moved\nlisted\n1\n", as: RunFixture.root)
    _ = other
    // Once it has not answered, nobody waits for it so long again.
    try served.expect(
      """
      sleep 3
      timeout 20 sh -c 'for i in $(seq 20); do stat $0/other$i 2>&1; done | grep -c "Input/output"' $D
      """, "20\n")
    // And another program, or another worker, goes on without it.
    let disk = try served.processes("fuse2fs")
    #expect(disk.count == 1)
    let worker = try #require(try served.run.mounted.daemon())
    let restarted = try served.shell(
      "timeout 60 \"$INSULA\" restart \"$POINT\" 2>&1",
      as: RunFixture.root)
    #expect(restarted.status == 0, "\(restarted)")
    #expect(try served.run.mounted.daemon() != worker)
    try served.expect("timeout 10 ls $POINT/Users/Shared/d2", "r\n", as: other.account)
    // Nothing else was ended for that.
    #expect(try served.processes("fuse2fs") == disk)
    try served.expect("cat $V/disk/kept", "kept\n")
  }

  /// The volume goes on when another worker does, also if its program hangs just then.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"), arguments: [false, true])
  func itOutlivesAWorker(hangs: Bool) throws {
    let served = try Served()
    let mounted = served.run.mounted
    try served.expect(
      """
      volume add \(served.url) >/dev/null; cat $D/a; I=$S/disk.img; truncate -s 16M $I
      mkfs.ext4 -qF -E root_owner $I; volume add --engine program $I >/dev/null; echo kept >$V/disk/kept
      """, "one\n")
    let disk = try served.processes("fuse2fs")
    let program = try served.program()
    let worker = try #require(try mounted.daemon())
    if hangs {
      // The program has passed the request on, and so nobody can take it back.
      for session in try served.processes("sshd") { kill(session, SIGSTOP) }
      _ = try served.shell("(timeout 20 cat $D/new >/dev/null 2>&1 &) ; sleep 0.3")
    }
    let reading = try served.shell(
      hangs ? "true" : "exec 3<$D/a; cd $D/sub; kill -9 \(worker) 2>/dev/null; true", as: RunFixture.root)
    _ = reading
    kill(worker, SIGKILL)
    #expect(try eventually { try mounted.daemon().map { $0 != worker } ?? false })
    try served.expect("timeout 5 cat \"$POINT/Users/Shared/none\" 2>&1 | grep -c such", "1\n")
    if hangs {
      // It was ended, and comes back when somebody looks for it.
      #expect(try eventually { try served.shell("timeout 5 cat $D/a").output == "one\n" })
    } else {
      try served.expect("cat $D/a; echo x >$D/y; cat $S/y", "one\nx\n")
      #expect(try served.program() == program)
    }
    // Nothing else was ended for that.
    let left = try served.processes("fuse2fs")
    let log = FD.text(of: mounted.store + "/state/daemon.log", limit: 1 << 16) ?? ""
    #expect(left == disk && disk.count == 1, "\(disk) \(left) \(log)")
    try served.expect("cat $V/disk/kept", "kept\n")
  }

  /// So does the process that mounts volumes: another one comes, and what there is goes on.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func whoMountsIsReplaced() throws {
    let served = try Served()
    let keeper = try #require(try served.run.mounted.keeper())
    try served.expect("volume add \(served.url) >/dev/null; cat $D/a", "one\n")
    for _ in 0..<2 {
      let helper = try Program.run(["pgrep", "-P", "\(keeper)", "-x", "insula-mounts"])
      kill(try #require(Int32(helper.output.split(separator: "\n").first ?? "")), SIGKILL)
      #expect(
        try eventually {
          let added = try served.shell("volume add \(served.url)/sub --at sub >/dev/null")
          return try added.status == 0 && served.shell("cat $D/a; volume eject sub").status == 0
        })
    }
  }

  /// Locks are the tree's own: a server need not know them.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func locksHoldHere() throws {
    let served = try Served()
    try served.expect(
      """
      volume add \(served.url) >/dev/null; cd $D; chmod 666 a; /usr/bin/python3 -c 'import fcntl, os
      for lock in (fcntl.flock, fcntl.lockf):
        f = open("a", "r+"); lock(f, fcntl.LOCK_EX)
        if os.fork() == 0:
          g = open("a", "r+")
          try: lock(g, fcntl.LOCK_EX | fcntl.LOCK_NB); print("both", flush=True)
          except OSError: print("one", flush=True)
          os._exit(0)
        os.wait(); f.close()'
      """, "one\none\n")
  }

  /// A program that ends by itself takes the volume along, and the next look brings it back.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func aProgramThatEndsIsStartedAgain() throws {
    let served = try Served()
    try served.expect("volume add \(served.url) >/dev/null; cat $D/a", "one\n")
    kill(try served.program(), SIGKILL)
    #expect(eventually { (try? served.shell("cat $D/a").output) == "one\n" })
  }

  /// One that can't be reached is not added, and says why.
  @Test(.enabled(if: sftpIsPossible, "sshfs and sshd are not installed"))
  func whatCantBeReachedSaysWhy() throws {
    let served = try Served()
    let refused = try served.shell("volume add sftp://127.0.0.1:1/x")
    #expect(refused.ending == .failed && refused.errors.includes("sshfs says: "), "\(refused)")
    let stranger = try served.shell("volume add sftp://root@127.0.0.1:\(served.port)/")
    #expect(stranger.errors.includes("Permission denied"), "\(stranger)")
    try served.expect("volume list", "There are no volumes.\n")
  }

  /// WebDAV by rclone.
  @Test(.enabled(if: WebDAVServer.isPossible, "rclone is not installed"))
  func webDAVIsServedByRclone() throws {
    let run = try RunFixture()
    let server = try WebDAVServer(in: run.mounted.temporary)
    let make = ["sh", "-c", "mkdir \"$0/x\" && echo one >\"$0/x/a\"", server.directory]
    try #require(try Program.run(make).status == 0)
    let script = """
      V="$POINT/Volumes"; D=$V/dav; S='\(server.directory)'
      timeout 60 "$INSULA" volume add \(server.url)/x --at dav --store "$POINT" >/dev/null
      cat $D/a; echo two >$D/b; mkdir $D/d; mv $D/b $D/d/c; cat $D/d/c; ls $D
      "$INSULA" volume eject dav --store "$POINT"
      for i in $(seq 100); do [ -s $S/x/d/c ] && break; sleep 0.1; done; cat $S/x/d/c
      """
    let result = try run.shell(script)
    #expect(result.status == 0 && result.output == "one\ntwo\na\nd\ntwo\n", "\(result)")
  }
}

extension Program {
  /// Whether a process has ended, and nobody has asked how.
  fileprivate static func isZombie(_ pid: Int32) -> Bool {
    ProcessID.field("State", of: "\(pid)")?.hasPrefix("Z") ?? true
  }
}
