// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

/// Volumes whose files are encrypted where they lie.
@Suite(
  .enabled(if: EncryptedFixture.isPossible, "mounting needs root and /dev/fuse, or gocryptfs is missing"),
  .mayTake(seconds: 300))
struct EncryptedVolumeTests {
  @Test(arguments: [false, true])
  func itIsAPartOfTheTreeWhileItIsUnlocked(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    let volume = fixture.run.mounted.path("Volumes/Private")
    try fixture.expect(
      """
      echo "$W" | volume create Private --encrypted --in $C/Private; D=$V/Private; ls $V
      echo plain words >$D/a; mkdir $D/d; mv $D/a $D/d/b; cat $D/d/b; ln $D/d/b $D/e; stat -c %h $D/e
      ln -s d $D/l; cat $D/l/b; echo more >>$D/e; cat $D/d/b; truncate -s 2 $D/e; stat -c %s $D/e
      chmod 600 $D/e; stat -c %a $D/e; cp /bin/true $D/t; cmp $D/t /bin/true && $D/t && echo ran
      "$INSULA" acl +a 'everyone deny write' $D/e; (echo x >$D/e) 2>/dev/null || echo denied
      volume list | grep -c 'Private .*read-write'; volume info Private | grep -c 'filesystem  gocryptfs'
      """,
      """
      \(volume)
      Private
      plain words
      2
      plain words
      plain words
      more
      2
      600
      ran
      denied
      1
      1

      """)
    // What lies on the disk tells nothing of that, and is enough to have it again.
    try fixture.expect(
      """
      grep -rl plain $C | wc -l; find $C -name d | wc -l; find $C/Private -type f | wc -l
      stat -c %a $C/Private
      cp -a $C/Private $C/copy; volume eject Private; ls $V; find $C/Private -type f | wc -l
      volume add $C/copy --encrypted --at Again; ls $V; unlock Again; cat $V/Again/d/b; volume eject Again
      volume add $C/Private 2>&1 | grep -c 'has files that gocryptfs has encrypted'; ls $V/Private | wc -l
      """,
      """
      0
      0
      6
      700
      6
      \(fixture.run.mounted.path("Volumes/Again"))
      pl1
      6

      """)
  }

  /// Where nothing is said they lie beside one's store, and not in it.
  @Test func encryptedFilesLieBesideTheStore() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect(
      """
      export HOME=$C; echo "$W" | volume create Own --encrypted >/dev/null; echo x >$V/Own/x; cat $V/Own/x
      ls $C/.local/share/insula-volumes/Own | grep gocryptfs.conf; stat -c %a $C/.local/share/insula-volumes
      """, "x\ngocryptfs.conf\n700\n")
    for place in ["$V/../Users/Shared/x", "\(fixture.run.mounted.store)/x"] {
      try fixture.refuse(
        "echo a | volume create Loop --encrypted --in \(place)", "can't be a volume: it", as: RunFixture.root)
    }
    try fixture.expect("volume list | grep -c Loop || true; ls $POINT/Users/Shared", "0\n")
  }

  /// Locked, its name says so, and the program with its keys has ended.
  @Test(arguments: [false, true])
  func lockingEndsWhatHasItsKeys(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    try fixture.expect("create Private; echo x >$V/Private/x", "")
    #expect(try fixture.programs().count == 1)
    let doctor = "\"$INSULA\" doctor \"$POINT\" | grep -E 'volume Private'"
    #expect(try fixture.shell(doctor).output.includes("unlocked: its keys are in the memory of gocryptfs"))
    try fixture.expect("volume lock Private; ls $V", "")
    #expect(try fixture.programs() == [])
    try fixture.expect(
      """
      for c in "cat $V/Private/x" "ls $V/Private" "touch $V/Private/y" "mkdir $V/Private" "rmdir $V/Private"
      do $c 2>&1 | grep -c 'Required key not available'; done
      volume list | grep -c 'Private .*locked'; volume info Private | grep -c 'state *locked'
      \(doctor) | grep -c 'locked: no process has its keys'; volume lock Private && echo again
      """, "1\n1\n1\n1\n1\n1\n1\n1\nagain\n")
    // One that somebody has started with the same files is found.
    try fixture.expect(
      """
      mkdir $C/point; echo "$W" | gocryptfs -q -fg $C/Private $C/point >/dev/null 2>&1 & other=$!
      until [ -e $C/point/x ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done
      \(doctor) | grep -c "gocryptfs (pid $other) still has its files open"; kill $other; wait $other; true
      """, "1\n", as: rootless ? nil : RunFixture.root)
    try fixture.expect("unlock Private; cat $V/Private/x; unlock Private; volume lock --all; ls $V", "x\n")
    #expect(try fixture.programs() == [])
  }

  /// What was to be unlocked before it is locked stays locked, and whoever locks it waits for that.
  @Test(arguments: [false, true])
  func lockingEndsWhatUnlocksIt(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    let mounted = fixture.run.mounted
    let socket = rootless ? mounted.store + "/state/control.sock" : try mounted.socket()
    // It waits for its password.
    try fixture.expect(
      """
      create Private; volume lock Private
      timeout 60 /usr/bin/python3 - \(socket) $C "$W" >/dev/null 2>&1 <<'END' &
      import array, os, socket, sys, time
      made = socket.socket(socket.AF_UNIX); made.connect(sys.argv[1]); file = made.makefile("r")
      made.sendall(b'{"verb":"pass"}\\n'); file.readline()
      read, write = os.pipe(); rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [read]))
      made.sendmsg([b"\\n"], [rights]); file.readline()
      made.sendall(b'{"verb":"volume","volume":{"deed":"unlock","name":"Private"}}\\n')
      while not os.path.exists(sys.argv[2] + "/go"): time.sleep(0.02)
      os.write(write, sys.argv[3].encode() + b"\\n"); answer = file.readline()
      open(sys.argv[2] + "/answer", "w").write(answer)
      END
      """, "")
    #expect(try eventually { try fixture.programs().count == 1 })
    try fixture.expect("volume lock --all", "")
    #expect(try fixture.programs() == [])
    try fixture.expect(
      """
      touch $C/go; timeout 60 sh -c "until [ -s $C/answer ]; do sleep 0.05; done"
      grep -c 'it was locked meanwhile' $C/answer; volume list | grep -c 'Private .*locked'
      unlock Private; ls $V
      """, "1\n1\nPrivate\n")
    // One that still ends, and that another worker has told to.
    let program = try #require(try fixture.programs().first)
    kill(program, SIGSTOP)
    defer { kill(program, SIGCONT) }
    try fixture.expect(
      """
      (volume lock Private >/dev/null 2>&1 &)
      timeout 20 sh -c "while ls $V | grep -q Private; do sleep 0.05; done"
      """, "")
    let worker = try #require(try mounted.daemon())
    kill(worker, SIGKILL)
    #expect(try eventually { try mounted.daemon().map { $0 != worker } ?? false })
    try fixture.expect(
      """
      (sleep 1; kill -CONT \(program)) & volume lock Private; kill -0 \(program) 2>/dev/null && echo there
      wait; unlock Private; ls $V
      """, "Private\n")
  }

  /// Root locks those of all users, wherever their daemons listen, whatever else is in such a place.
  @Test(arguments: [false, true])
  func rootLocksThoseOfAll(isInStore: Bool) throws {
    let fixture = try EncryptedFixture(rootless: true)
    let mounted = fixture.run.mounted
    try fixture.expect("create Private; echo x >$V/Private/x", "")
    // Nobody else's store is a matter of this test: others are not seen where it runs.
    let script = """
      for m in $(awk -v own="$1" '$3 == "fuse.insula" && $2 != own { print $2 }' /proc/self/mounts)
      do umount -l $m; done
      mount -t tmpfs none /run; mkdir -p /run/user/65534/insula /run/user/1/insula
      chown -R 65534 /run/user/65534
      chown 1 /run/user/1/insula
      \(isInStore ? "" : "touch $2/moved; mount --bind $2/moved $2/store/state/control.sock")
      ln -s "$2/store/state/control.sock" /run/user/1/insula/a.sock
      /usr/bin/python3 -c 'import os, socket, time
      s = socket.socket(socket.AF_UNIX); os.seteuid(1); s.bind("/run/user/1/insula/b.sock"); s.listen(0)
      time.sleep(60)' & silent=$!
      until [ -e /run/user/1/insula/b.sock ] || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      timeout 30 "$0" volume lock --all --force; echo $?; kill $silent
      """
    let result = try Program.run(
      ["unshare", "-m", "sh", "-c", script, Program.insula, mounted.point, mounted.temporary.path])
    #expect(result.output.hasSuffix("1\n"), "\(result)")
    for name in ["a.sock", "b.sock"] {
      #expect(result.errors.includes("/run/user/1/insula/\(name) does not answer"), "\(result)")
    }
    #expect(result.errors.includes("locked Private") || result.output.includes("locked Private") == isInStore)
    #expect(result.errors.includes("the daemon of \(mounted.store)") != isInStore, "\(result)")
    #expect(try fixture.programs().isEmpty == isInStore)
  }

  /// What a directory is made with holds at once, and what changes nothing succeeds.
  @Test func modesAndOwnersAreAsOnADisk() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect(
      """
      create P; cd $V/P; /usr/bin/python3 -c 'import os
      os.umask(0)
      for mode in (0o600, 0o066):
        os.mkdir("%o" % mode, mode)
        try: os.chdir("%o" % mode); print("entered")
        except PermissionError: print("%o" % os.stat("%o" % mode).st_mode)'
      touch f; chown $(id -u):$(id -g) f && chown $(id -u) f && chgrp $(id -g) f && echo same
      chown 0 f 2>/dev/null || echo no
      """, "40600\n40066\nsame\nno\n")
    try fixture.expect(
      "chown \(fixture.run.user.uid) $V/P/f 2>/dev/null || echo none", "none\n", as: RunFixture.root)
    // A file without a name is still its user's.
    try fixture.expect(
      """
      /usr/bin/python3 -c 'import os
      f = os.open("'$V'/P/q", os.O_RDWR | os.O_CREAT, 0o644); os.write(f, b"text"); os.unlink("'$V'/P/q")
      print(os.fstat(f).st_size); os.ftruncate(f, 2); print(os.fstat(f).st_size)'
      """, "4\n2\n")
  }

  /// Names neither vanish from a listing nor come twice while others go and come.
  @Test func listingsHaveEachNameOnce() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect(
      """
      create P; mkdir $V/P/d; cd $V/P/d; seq 1500 | xargs touch; /usr/bin/python3 -c 'import os
      seen = []
      for entry in os.scandir("."):
        seen.append(entry.name); os.unlink(entry.name); open("n" + entry.name, "w").close()
      print(len(set(seen)), len(seen)); [os.unlink(e.name) for e in os.scandir(".")]; os.rmdir("../d")'
      """, "1500 1500\n")
  }

  @Test func whatIsUsedIsLockedByForceAlone() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect("create Private; echo one >$V/Private/x; mkdir $V/Private/sub", "")
    let busy = try fixture.shell("exec 3<$V/Private/x; volume lock Private; volume lock --all; cat <&3")
    #expect(busy.output == "one\n" && busy.errors.includes("Private is in use: pid "), "\(busy)")
    let entered = try fixture.shell("cd $V/Private/sub; volume lock Private; ls -A | wc -l")
    #expect(entered.output == "0\n" && entered.errors.includes("working directory"), "\(entered)")
    try fixture.expect(
      """
      exec 3<>$V/Private/x; cd $V/Private/sub; volume lock Private --force
      cat <&3 2>&1 | grep -c 'Input/output error'; (echo y | cat >&3) 2>&1 | grep -c 'Input/output error'
      ls . >/dev/null 2>&1 || echo gone; cat $V/Private/x 2>&1 | grep -c 'key not available'
      """, "1\n1\ngone\n1\n")
    #expect(try fixture.programs() == [])
    try fixture.expect("unlock Private; cat $V/Private/x", "one\n")
  }

  /// It is locked when the tree is mounted, and stays unlocked when another worker goes on.
  @Test(arguments: [false, true])
  func itOutlivesAWorkerButNoMount(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    let mounted = fixture.run.mounted
    try fixture.expect("create Private; create Other; volume lock Other; echo x >$V/Private/x", "")
    let program = try #require(try fixture.programs().first)
    let worker = try #require(try mounted.daemon())
    kill(worker, SIGKILL)
    #expect(try eventually { try mounted.daemon().map { $0 != worker } ?? false })
    try fixture.expect(
      "cat $V/Private/x; volume list | grep -c 'Other .*locked'; ls $V/Other 2>&1 | grep -c key", "x\n1\n1\n")
    #expect(try fixture.programs() == [program])
    try fixture.expect("volume lock Private; unlock Private; cat $V/Private/x", "x\n")
    // Whoever ends the program has locked it.
    kill(try #require(try fixture.programs().first), SIGKILL)
    #expect(
      try eventually { try fixture.shell("cat $V/Private/x").errors.includes("Required key not available") })
    try fixture.expect("volume list | grep -c 'Private .*locked'; unlock Private; cat $V/Private/x", "1\nx\n")
    _ = try mounted.unmount()
    #expect(try eventually { try fixture.programs() == [] })
    try mounted.mount()
    try fixture.expect(
      "volume list | grep -c locked; cat $V/Private/x 2>&1 | grep -c key; unlock Private; cat $V/Private/x",
      "2\n1\nx\n")
  }

  /// Who looks into it waits, if that is wished, and nobody else does.
  @Test(arguments: [false, true])
  func programsWaitUntilItIsUnlocked(rootless: Bool) throws {
    let fixture = try EncryptedFixture(rootless: rootless)
    try fixture.expect("create Private --wait; echo x >$V/Private/x; volume lock Private", "")
    try fixture.expect(
      """
      mkdir $C/ends; for i in $(seq 12); do (cat $V/Private/x >$C/ends/$i) 2>/dev/null & done
      (cd $V/Private && echo new >new; stat -c %F $V/Private >$C/ends/status) & sleep 1
      # Who is killed ends, and nobody else waits.
      timeout -s KILL 1 cat $V/Private/x
      timeout 10 sh -c 'ls $0; mkdir $0/new 2>&1 | grep -c permitted; stat $0/none 2>&1 | grep -c such' $V
      unlock Private; wait; cat $C/ends/* | sort | uniq -c | sed 's/^ *//'; cat $V/Private/new
      find $C/Private -type f | xargs grep -l new | wc -l
      """, "1\n1\n1 directory\n12 x\nnew\n0\n", as: rootless ? nil : fixture.run.user)
    // After a mount too, and over the end of a worker.
    let mounted = fixture.run.mounted
    _ = try mounted.unmount()
    try mounted.mount()
    let worker = try #require(try mounted.daemon())
    try fixture.expect(
      "(timeout 60 cat $V/Private/x; touch $C/done) >$C/late 2>&1 </dev/null & sleep 0.5", "")
    kill(worker, SIGKILL)
    #expect(try eventually { try mounted.daemon().map { $0 != worker } ?? false })
    try fixture.expect(
      "unlock Private; until [ -e $C/done ] || [ $((w+=1)) -gt 2400 ]; do sleep 0.05; done; cat $C/late",
      "x\n")
    // What is said when it is locked holds from then on.
    try fixture.expect(
      """
      waiters() { for i in 1 2 3 4; do (timeout 60 cat $V/Private/x 2>&1 | grep -c $1) & done; sleep 0.5; }
      volume lock Private --no-wait; cat $V/Private/x 2>&1 | grep -c key; volume lock Private --wait
      waiters key; volume lock Private --no-wait; wait; volume lock Private --wait
      waiters such; volume eject Private; wait; volume add $C/Private >/dev/null; ls $V/Private | grep -c conf
      """, String(repeating: "1\n", count: 10))
  }

  /// What another worker has left is taken over once: a descriptor with two owners is closed twice, and the
  /// second time it is somebody else's.
  @Test func nothingIsClosedTwice() throws {
    let fixture = try EncryptedFixture()
    let mounted = fixture.run.mounted
    try fixture.expect("create Private", "")
    #expect(try mounted.run("restart", mounted.point).status == 0)
    let worker = try #require(try mounted.daemon())
    try fixture.expect(
      """
      strace -f -qq -Z -e trace=close -o $C/trace -p \(worker) & tracer=$!
      until grep -q 'TracerPid:.[1-9]' /proc/\(worker)/status || [ $((w+=1)) -gt 6000 ]; do sleep 0.02; done
      for round in 1 2 3; do
        volume lock Private --user \(fixture.run.user.name) --quiet
        volume list >/dev/null; volume list >/dev/null
        echo "$W" | volume unlock Private --user \(fixture.run.user.name) >/dev/null
      done
      kill $tracer; wait $tracer; cat $C/trace; volume list | grep -o '^Private'
      """, "Private\n", as: RunFixture.root)
  }

  /// Root's is root's alone, and its program has none of root's rights.
  @Test func rootsIsRootsAlone() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect(
      """
      create Roots; echo x >$V/Roots/x; cat $V/Roots/x; stat -c %u $V/Roots/x
      volume list | grep -c 'Roots  *root'
      """, "x\n0\n1\n", as: RunFixture.root)
    let program = try #require(try fixture.programs().first)
    #expect(ProcessID.field("CapEff", of: "\(program)") == "0000000000000000")
    #expect(ProcessID.field("CapPrm", of: "\(program)") == "0000000000000000")
    try fixture.expect(
      "ls $V; volume list; cat $V/Roots/x 2>&1 | grep -c -e such -e memory", "There are no volumes.\n1\n")
  }

  @Test func appsHaveWhatWasGrantedOfIt() throws {
    let fixture = try EncryptedFixture()
    try fixture.expect(
      """
      create Private; mkdir $V/Private/for; echo x >$V/Private/for/f; echo y >$V/Private/secret
      insula grant $APP $V/Private/for >/dev/null
      run sh -c "cat $V/Private/for/f; cat $V/Private/secret 2>&1 | grep -c such; echo new >$V/Private/for/n"
      cat $V/Private/for/n; volume lock Private; run cat $V/Private/for/f 2>/dev/null || echo locked
      unlock Private; run cat $V/Private/for/f
      """, "x\n1\nnew\nlocked\nx\n")
  }
}
