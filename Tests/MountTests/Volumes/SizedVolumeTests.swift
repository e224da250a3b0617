// SPDX-License-Identifier: Apache-2.0
// Copyright the Insula authors

internal import Glibc
internal import LinuxIO
internal import TestSupport
internal import Testing

// What is tried with an encrypted volume that has a size:
//
//  1. To have more: one large write, holes that are filled, maps, files without names, many names, long
//     names.
//  2. To have the kernel mount what a user has written: another file, a link, a pipe or a copy lies where the
//     disk was; a file of root's; another user's disk; or it is written to while it is mounted.
//  3. To have room that is kept for root, or what is no size.
//  4. gocryptfs or the daemon is killed while it is written to.

/// Encrypted volumes whose files have a disk of their own.
@Suite(
  .enabled(if: EncryptedFixture.isPossible, "mounting needs root and /dev/fuse, or gocryptfs is missing"),
  .mayTake(seconds: 300))
struct SizedVolumeTests {
  /// `fill FILE` writes until there is no room; `fits` says how much the disk takes; `locked` and `unused`
  /// wait until nobody can read the volume, and until the kernel has its disk no more.
  private static let helpers = """
    D=$V/Private; I=$C/Private/gocryptfs.ext4
    fill() { dd if=/dev/zero of="$1" bs=64k status=none 2>$C/why; grep -c 'No space left' $C/why; }
    fits() { du --block-size=1M $I | cut -f 1; }
    locked() {
      for n in $(seq 100); do cat $D/x 2>&1 | grep -q key && return; sleep 0.05; done; echo unlocked
    }
    unused() { for n in $(seq 100); do flock -n $I true && return; sleep 0.05; done; echo used; }

    """

  private let fixture: EncryptedFixture

  init() throws { fixture = try EncryptedFixture() }

  private func expect(
    _ script: String, _ output: String, as account: Account? = nil,
    location: SourceLocation = #_sourceLocation
  ) throws {
    try fixture.expect(Self.helpers + script, output, as: account, location: location)
  }

  private func refuse(
    _ script: String, _ words: String, _ ending: Ending = .failed, as account: Account? = nil,
    location: SourceLocation = #_sourceLocation
  ) throws {
    try fixture.refuse(Self.helpers + script, words, ending, as: account, location: location)
  }

  @Test(arguments: [false, true])
  func itHasWhatWasReservedAndNoMore(isRoots: Bool) throws {
    let account = isRoots ? RunFixture.root : nil
    try expect(
      """
      create Private --size 24M; stat -c '%s %a %u' $I; ls $C/Private; test $(fits) -ge 24 && echo reserved
      df --output=size --block-size=1M $D | tail -1 | tr -d ' '
      echo x >$D/x; mkdir $D/d; mv $D/x $D/d/y; cat $D/d/y; ln $D/d/y $D/z; stat -c %h $D/z
      "$INSULA" acl +a 'everyone deny write' $D/z; "$INSULA" ls -le $D/z | grep -c 'everyone deny write'
      fill $D/f; fits; cat $D/z; echo x 2>/dev/null >$D/new && cat $D/new; rm -f $D/new
      rm $D/f; dd if=/dev/zero of=$D/g bs=1M count=15 status=none && stat -c %s $D/g; rm $D/g
      """,
      """
      25165824 640 0
      gocryptfs.conf
      gocryptfs.ext4
      reserved
      19
      x
      2
      1
      1
      25
      x
      15728640

      """, as: account)
    try expect(
      "cat >$C/attempts.py <<'END'\n\(Self.attempts)\nEND\n"
        + """
        timeout 100 /usr/bin/python3 $C/attempts.py $D; fits; rm -rf $D/*; echo y >$D/y; cat $D/y
        sleep 10; test $(($(stat -c %b $I) * 512)) -ge 25165824 && echo reserved
        volume lock Private; unused; e2fsck -fn $I >$C/said 2>&1 || cat $C/said
        unlock Private; cat $D/y; volume info Private | grep -c 'filesystem  gocryptfs'
        """,
      """
      nameless: No space left on device
      holes: No space left on device
      map: not all
      names: No space left on device
      long names: No space left on device
      25
      y
      reserved
      y
      1

      """, as: account)
  }

  /// Tries to have more than there is.
  private static let attempts = """
    import mmap, os, shutil, sys
    os.chdir(sys.argv[1])
    def until_full(what, step):
        try:
            for n in range(1 << 20): step(n)
            print(what + ": never ends")
        except OSError as error: print(what + ": " + os.strerror(error.errno))
    held = []
    def nameless(n):
        held.append(os.open("n", os.O_RDWR | os.O_CREAT)); os.unlink("n")
        os.write(held[-1], os.urandom(1 << 20))
    until_full("nameless", nameless)
    for file in held: os.close(file)
    holes = os.open("holes", os.O_RDWR | os.O_CREAT); os.ftruncate(holes, 64 << 20)
    until_full("holes", lambda n: os.pwrite(holes, os.urandom(65536), n << 16))
    os.ftruncate(holes, 0); os.ftruncate(holes, 64 << 20)
    shared = mmap.mmap(holes, 64 << 20)
    for at in range(0, 64 << 20, 4096): shared[at:at + 8] = b"overfull"
    try: shared.flush(); os.fsync(holes); print("map: all")
    except OSError: print("map: not all")
    shared.close(); os.close(holes); os.unlink("holes")
    def name(n):
        os.close(os.open("n%d" % n, os.O_WRONLY | os.O_CREAT))
    until_full("names", name)
    for n in os.listdir("."): 
        if n.startswith("n"): os.unlink(n)
    os.mkdir("long"); os.close(os.open("one", os.O_WRONLY | os.O_CREAT))
    until_full("long names", lambda n: os.link("one", "long/" + "%0240d" % n))
    """

  /// What was synchronized is there, whoever is killed.
  @Test func itOutlivesWhoeverIsKilled() throws {
    try expect("create Private --size 64M; echo x >$D/x; sync $D/x", "")
    for round in 1...3 {
      let writer = try fixture.shell(
        Self.helpers + """
          (n=0; while echo $n >$D/w$((n % 50)) && mkdir -p $D/d$((n % 7))/$n
            do n=$((n + 1)); done) 2>/dev/null &
          sleep 0.5; echo \(round) >$D/r; sync $D/r
          """)
      #expect(writer.status == 0, "\(writer)")
      let program = try #require(try fixture.programs().first)
      #expect(kill(program, SIGKILL) == 0)
      #expect(try eventually { try fixture.programs() == [] })
      try expect(
        "locked && unused; unlock Private; cat $D/x $D/r; echo more >$D/more",
        "x\n\(round)\n")
    }
    let worker = try #require(try fixture.run.mounted.daemon())
    #expect(kill(worker, SIGKILL) == 0)
    try expect("cat $D/more; volume list | grep -c 'Private .*read-write'", "more\n1\n")
    #expect(try fixture.programs().count == 1)
    // Who locks it has it written, and who has tried a password in vain leaves nothing behind.
    try expect(
      """
      volume lock Private; flock -n $I echo free; echo wrong | volume unlock Private 2>&1 | grep -c 'is wrong'
      unused; unlock Private; cat $D/more; volume eject Private; unused
      volume add $C/Private --encrypted --read-only >/dev/null; unlock Private; cat $D/more
      (echo y >$D/more) 2>&1 | grep -c 'Read-only'; volume lock Private; flock -n $I echo free
      """, "free\n1\nmore\nmore\n1\nfree\n")
  }

  /// The kernel mounts nothing that anybody but root has been able to write.
  @Test func nobodyWritesWhatTheKernelMounts() throws {
    try expect(
      """
      create Private --size 24M; echo x >$D/x; head -c 9 $I | wc -c; stat -c %G $I
      for how in 'dd of=$I conv=notrunc count=1' 'truncate -s 1M $I' 'chmod 666 $I' 'fallocate -p -l 4096 $I'
      do eval "$how" </dev/zero >/dev/null 2>&1 && echo "$how"; done
      volume lock Private; mv $I $C/good; cp $C/good $C/copy
      """, "9\nroot\n")
    let refused = "is no disk that was made for this user here"
    for change in [
      "cp $C/copy $I", "ln -s ../good $I", "mkfifo $I", "mkdir $I", "ln -s ../copy $I", ": >$I",
      "cp $C/copy $I; chmod 0 $I", "cp $C/copy $I; setfattr -n user.insula.disk -v $(id -u) $I",
    ] {
      try refuse("\(change); echo \"$W\" | volume unlock Private", refused)
      try expect("rm -rf $I; ls $V", "")
    }
    // Root's, but never made a disk; one that others may write; another user's.
    let user = fixture.run.user
    for change in [
      "cp $C/copy $I", "cp -a $C/good $I; chmod 660 $I", "cp -a $C/good $I; chown \(user.uid) $I",
      "cp -a $C/good $I; setfattr -n trusted.insula.disk -v \(user.uid + 1) $I",
    ] {
      try expect(change, "", as: RunFixture.root)
      try refuse("echo \"$W\" | volume unlock Private", refused)
      try expect("rm -rf $I; ls $V", "")
    }
    // Nor is it mounted when somebody else has it mounted, or when it is not there.
    try expect("cp -a $C/good $I; mkdir $C/m; mount -o loop,ro $I $C/m", "", as: RunFixture.root)
    try refuse(
      "echo \"$W\" | timeout 60 \"$INSULA\" volume unlock Private --store $POINT", "in use already",
      .busy)
    try expect("umount $C/m; mv $I $C/away", "", as: RunFixture.root)
    try refuse("echo \"$W\" | volume unlock Private", "its gocryptfs.ext4 is missing")
    // What root has copied as it was is one.
    try expect("cp -a $C/good $I", "", as: RunFixture.root)
    try expect("unlock Private; cat $D/x; volume lock Private", "x\n")
    // It is mounted once, and what a user holds on to is theirs alone.
    try expect(
      """
      flock -s $I sh -c "echo '$W' | timeout 60 '$INSULA' volume unlock Private --store $POINT 2>&1" |
        grep -c 'in use already'
      unlock Private; cat $D/x; rm $I; cat $D/x; volume lock Private; ls $C/Private
      """, "1\nx\nx\ngocryptfs.conf\n")
  }

  /// Whoever makes one where another is being made takes nothing away from that.
  @Test func oneIsMadeInAPlaceAtATime() throws {
    try expect(
      """
      mkfifo $C/password; (cat $C/password | volume create First --encrypted --in $C/P >/dev/null) &
      exec 3>$C/password; for n in $(seq 100); do [ -d $C/P ] && break; sleep 0.05; done
      echo x | volume create Second --encrypted --in $C/P --size 24M 2>&1 | grep -c 'somebody else is making'
      echo x | volume create Second --encrypted --in $C/P 2>&1 | grep -c 'somebody else is making'
      echo "$W" >&3; exec 3>&-; wait; echo one >$V/First/f; volume lock First; unlock First; cat $V/First/f
      """, "1\n1\none\n")
    try refuse("echo | volume create Third --encrypted --in $C/P --size 24M", "is not empty")
    try expect("volume lock First; unlock First; cat $V/First/f", "one\n")
  }

  /// A user can keep the disk of a locked volume, and not more of those than they may have volumes.
  @Test func disksThatAreKeptCount() throws {
    let script = """
      import os, subprocess, sys, time
      insula, point, directory = sys.argv[1:]
      def volume(verb, *words):
          return subprocess.run([insula, "volume", verb, "--store", point, *words], input=b"word",
                                capture_output=True, timeout=100)
      held = []
      for n in range(20):
          made = volume("create", f"n{n}", "--encrypted", "--size", "16M", "--in", f"{directory}/n{n}")
          if made.returncode:
              print(n, "too many disks" in made.stderr.decode()); break
          program = subprocess.check_output(["pgrep", "-n", "-u", str(os.getuid()), "-x", "gocryptfs"])
          held.append(os.open(f"/proc/{int(program)}/fd/3/files", os.O_RDONLY))
          volume("eject", f"n{n}"); os.unlink(f"{directory}/n{n}/gocryptfs.ext4")
      os.close(held.pop()); time.sleep(2)
      print(volume("create", "last", "--encrypted", "--size", "16M", "--in", f"{directory}/last").returncode)
      """
    try expect(
      "timeout 200 /usr/bin/python3 - \"$INSULA\" $POINT $C <<'END'\n\(script)\nEND\n", "16 True\n0\n")
  }

  @Test func whatIsNoSizeLeavesNothing() throws {
    for (size, words) in [
      ("10", "no volume can have that size"), ("0", "no volume can have that size"), ("-1G", "is no size"),
      ("1X", "is no size"), ("99999999999T", "is no size"), ("900T", "there is not so much room"),
      ("2000T", "no volume can have that size"),
    ] {
      try refuse(
        "echo \"$W\" | volume create Private --encrypted --size=\(size) --in $C/Private", words,
        words == "is no size" ? .usage : .failed)
    }
    let rootless = try EncryptedFixture(rootless: true)
    try rootless.refuse("create Private --size 24M", "only volumes of the machine's store have a size")
    for store in [fixture, rootless] { try store.expect("ls $C; volume list", "There are no volumes.\n") }
    try fixture.refuse(
      """
      for n in $(seq 16); do mkdir $C/d$n; volume add $C/d$n >/dev/null 2>&1; done; create Private --size 24M
      """, "there are too many volumes")
    // The kernel detaches a device when its last user has closed it, which may be a moment later.
    try expect(
      """
      for n in $(seq 100); do losetup -a | grep -q $C || break; sleep .1; done
      ls -d $C/P* 2>/dev/null; losetup -a | grep $C; true
      """, "", as: RunFixture.root)
    // Room that is kept for root is kept from it.
    let disk = try SmallDisk(ext4: 64, percentKeptForRoot: 50)
    chmod(disk.path, 0o777)
    let small = try EncryptedFixture(directory: disk.path)
    try small.refuse("create Private --size 40M", "there is not so much room")
    try small.expect(
      "ls $C; create Private --size 18M; echo x >$V/Private/x; cat $V/Private/x", "lost+found\nx\n")
  }
}
